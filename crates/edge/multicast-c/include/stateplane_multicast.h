/*
 * Senders and receivers of Stateplane's multicast: all receivers of all groups that a message
 * addresses get it, and all get messages in one order. docs/multicast.md says what is promised.
 *
 * Link with -lstateplane_multicast_c.
 *
 * Threads: a handle is used by one thread at a time; another gets STATEPLANE_MULTICAST_BUSY. Nobody
 * may use a handle while it is closed, or after that. Handles do not survive fork().
 *
 * Signs of life are given within calls: call a sender's step and a receiver's next at least once
 * a second. A receiver that is silent for longer than the deployment's receiver_ttl_ms is taken off
 * its group's list, a sender that is silent for longer than session_ttl_ms loses its session and
 * gets another one.
 *
 * Times are in µs.
 */
#ifndef STATEPLANE_MULTICAST_H
#define STATEPLANE_MULTICAST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the interface that this file describes; stateplane_multicast_abi() is the library's. */
#define STATEPLANE_MULTICAST_ABI 1

/* Outcome of a call. */
enum stateplane_multicast_code {
  STATEPLANE_MULTICAST_OK = 0,
  /* Nothing came in the time given. */
  STATEPLANE_MULTICAST_NOTHING = 1,
  /* Each of the session's lanes for these groups carries a message: step, then send again. */
  STATEPLANE_MULTICAST_NO_LANE = 2,
  /* The receiver was taken off the group's list; there are no more messages. */
  STATEPLANE_MULTICAST_TAKEN_OFF = 3,
  STATEPLANE_MULTICAST_ARGUMENT = 4,
  STATEPLANE_MULTICAST_TOO_LONG = 5,
  STATEPLANE_MULTICAST_NO_GROUP = 6,
  /* No controller or no leader answers in time. */
  STATEPLANE_MULTICAST_SILENT = 7,
  /* No session, lane or place on the list is free. */
  STATEPLANE_MULTICAST_FULL = 8,
  /* The file of keys cannot be used. From step and next: it changed, and the keys so far stay. */
  STATEPLANE_MULTICAST_KEYS = 9,
  /* The system refuses. */
  STATEPLANE_MULTICAST_SYSTEM = 10,
  /* Another thread uses the handle. */
  STATEPLANE_MULTICAST_BUSY = 11,
  /* The library failed. The handle can be closed, and nothing else. */
  STATEPLANE_MULTICAST_INTERNAL = 12
};

/* Kind of a sender's event. */
enum stateplane_multicast_event_kind {
  /* All receivers of all groups have the message, also if it was told as unknown before. */
  STATEPLANE_MULTICAST_COMPLETE = 1,
  /* The message went nowhere. */
  STATEPLANE_MULTICAST_REFUSED = 2,
  /* The message may have been delivered, or be yet. Its lane stays taken until that is known. */
  STATEPLANE_MULTICAST_UNKNOWN = 3
};

typedef struct stateplane_multicast_sender stateplane_multicast_sender;
typedef struct stateplane_multicast_receiver stateplane_multicast_receiver;

/* Options. Zeros and null mean what is usual, except for size and controllers. */
typedef struct stateplane_multicast_options {
  /* sizeof(stateplane_multicast_options). */
  size_t size;
  /* Addresses of the controllers, divided by commas, with a port unless it is 4795. */
  const char *controllers;
  /* The host's own address; usual: that from which the system sends to the first controller.
   * One receiver runs at an address. */
  const char *address;
  /* File of keys (docs/message-authentication.md); usual: messages are not sealed. */
  const char *keys;
  /* Time that opening has, and after which the outcome of a message is unknown; usual: 10 s. */
  uint64_t timeout_us;
  /* Sender: messages that can be under way together, at most 255; usual: 8. */
  uint32_t lanes;
  /* Receiver: most messages that wait for the program, then senders wait; usual: 1024. */
  uint32_t queue;
} stateplane_multicast_options;

/* Id of a message: no two messages have the same. */
typedef struct stateplane_multicast_id {
  uint64_t number;
  uint16_t session;
  uint8_t lane;
  uint8_t reserved[5];
} stateplane_multicast_id;

/* Place of a message in the order. Of two, that of the greater time is later, and of equal times
 * that of the greater group. */
typedef struct stateplane_multicast_place {
  uint64_t time;
  uint8_t group;
  uint8_t reserved[7];
} stateplane_multicast_place;

/* Event of a sender. */
typedef struct stateplane_multicast_event {
  /* One of stateplane_multicast_event_kind. */
  uint32_t kind;
  /* REFUSED: the reason, for stateplane_multicast_refusal(); else 0. */
  uint32_t refusal;
  stateplane_multicast_id id;
  /* COMPLETE: its place, of time 0 if the groups have forgotten it; else zeros. */
  stateplane_multicast_place at;
} stateplane_multicast_event;

/* A message, as a receiver gets it. */
typedef struct stateplane_multicast_message {
  stateplane_multicast_id id;
  stateplane_multicast_place at;
  /* The payload, until the next call with the receiver; it belongs to the receiver. */
  const void *payload;
  size_t length;
  /* Map of the groups that it addresses: bit 0 is group 0. */
  uint32_t groups;
  uint32_t reserved;
} stateplane_multicast_message;

/* Version of the library's interface. */
uint32_t stateplane_multicast_abi(void);

/* Meaning of a code, in words. Never null; lasts as long as the library. */
const char *stateplane_multicast_text(int32_t code);

/* Meaning of stateplane_multicast_event.refusal, in words. Never null; lasts as the library. */
const char *stateplane_multicast_refusal(uint32_t refusal);

/* Details of the calling thread's last call that failed, in UTF-8; "" if none did. Lasts until the
 * thread's next call that fails. OK, NOTHING and NO_LANE are no failures. */
const char *stateplane_multicast_error(void);

/* Opens a sender, and waits until it has a session and knows the leaders. *sender is null unless
 * the code is OK.
 * Codes: OK, ARGUMENT, KEYS, SILENT, FULL, SYSTEM, INTERNAL. */
int32_t stateplane_multicast_sender_open(const stateplane_multicast_options *options,
                                         stateplane_multicast_sender **sender);

/* Sends a payload to all receivers of the groups in a map (bit 0 is group 0), with the next step.
 * The payload is copied. *id gets the message's id, unless id is null.
 * Codes: OK, NO_LANE, ARGUMENT (no group), NO_GROUP, TOO_LONG, BUSY, INTERNAL. */
int32_t stateplane_multicast_sender_send(stateplane_multicast_sender *sender, uint32_t groups,
                                         const uint8_t *payload, size_t length,
                                         stateplane_multicast_id *id);

/* Sends what waits, and waits at most wait_us for an event; with 0 it does not wait.
 * Codes: OK (*event is set), NOTHING, ARGUMENT, KEYS, SYSTEM, BUSY, INTERNAL. */
int32_t stateplane_multicast_sender_step(stateplane_multicast_sender *sender, uint64_t wait_us,
                                         stateplane_multicast_event *event);

/* Tells the sender the place of a message that its program learned of, from a receiver or another
 * program: what is sent from here on is behind it, whatever its groups. */
int32_t stateplane_multicast_sender_learned(stateplane_multicast_sender *sender, uint64_t time);

/* Messages that are under way. */
int32_t stateplane_multicast_sender_under_way(stateplane_multicast_sender *sender, size_t *count);

/* Map of the deployment's groups. */
int32_t stateplane_multicast_sender_groups(stateplane_multicast_sender *sender, uint32_t *groups);

/* Ends the session, waits at most wait_us for the controller to know that, and frees the sender.
 * Messages that are under way arrive everywhere or nowhere. Null is passed over. */
void stateplane_multicast_sender_close(stateplane_multicast_sender *sender, uint64_t wait_us);

/* Opens a receiver of a group, and waits until it is listed: it gets every message with a later
 * place. *receiver is null unless the code is OK.
 * Codes: OK, ARGUMENT, KEYS, NO_GROUP, SILENT, FULL, SYSTEM, INTERNAL. */
int32_t stateplane_multicast_receiver_open(const stateplane_multicast_options *options,
                                           uint8_t group, stateplane_multicast_receiver **receiver);

/* Waits at most wait_us for the next message in the order; with 0 it does not wait.
 * Codes: OK (*message is set), NOTHING, TAKEN_OFF, ARGUMENT, KEYS, SYSTEM, BUSY, INTERNAL. */
int32_t stateplane_multicast_receiver_next(stateplane_multicast_receiver *receiver,
                                           uint64_t wait_us, stateplane_multicast_message *message);

/* Messages that wait to be fetched. */
int32_t stateplane_multicast_receiver_queued(stateplane_multicast_receiver *receiver,
                                             size_t *count);

/* Timestamp behind which the receiver gets all messages. */
int32_t stateplane_multicast_receiver_after(stateplane_multicast_receiver *receiver,
                                            uint64_t *time);

/* Leaves the list, waits at most wait_us for the controller to know that, and frees the receiver.
 * Null is passed over. */
void stateplane_multicast_receiver_close(stateplane_multicast_receiver *receiver, uint64_t wait_us);

#ifdef __cplusplus
}
#endif

#endif
