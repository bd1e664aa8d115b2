/*
 * Sends lines to groups, or prints a group's messages in the order that all receivers have:
 *
 *   lines CONTROLLER send GROUPS < FILE        GROUPS is a list like 0,1
 *   lines CONTROLLER receive GROUP COUNT       COUNT messages, then it ends
 *
 * With `--keys FILE` before the rest messages are sealed.
 *
 * cc -o lines lines.c -lstateplane_multicast_c
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stateplane_multicast.h"

static const uint64_t SECOND = 1000000;

/* Ends the program unless the code is one that the caller can go on with. */
static int32_t check(const char *call, int32_t code) {
  if (code <= STATEPLANE_MULTICAST_NO_LANE)
    return code;
  fprintf(stderr, "%s: %s: %s\n", call, stateplane_multicast_text(code),
          stateplane_multicast_error());
  exit(1);
}

/* Waits for an event, and ends the program if a message did not arrive. */
static void step(stateplane_multicast_sender *sender) {
  stateplane_multicast_event event;
  if (check("step", stateplane_multicast_sender_step(sender, SECOND / 10, &event)) !=
      STATEPLANE_MULTICAST_OK)
    return;
  if (event.kind == STATEPLANE_MULTICAST_REFUSED) {
    fprintf(stderr, "refused: %s\n", stateplane_multicast_refusal(event.refusal));
    exit(1);
  }
  if (event.kind == STATEPLANE_MULTICAST_UNKNOWN)
    fprintf(stderr, "no answer of every group yet\n");
}

static void send_lines(const stateplane_multicast_options *options, const char *list) {
  stateplane_multicast_sender *sender;
  check("open", stateplane_multicast_sender_open(options, &sender));
  uint32_t groups = 0;
  for (const char *next = list; next; next = strchr(next, ',')) {
    next += *next == ',';
    groups |= UINT32_C(1) << (atoi(next) & 31);
  }
  char line[1024];
  while (fgets(line, sizeof line, stdin)) {
    size_t length = strcspn(line, "\n");
    while (check("send", stateplane_multicast_sender_send(sender, groups, (uint8_t *)line, length,
                                                          NULL)) == STATEPLANE_MULTICAST_NO_LANE)
      step(sender);
  }
  size_t under_way = 1;
  while (under_way > 0) {
    step(sender);
    check("under_way", stateplane_multicast_sender_under_way(sender, &under_way));
  }
  stateplane_multicast_sender_close(sender, SECOND);
}

static void receive_lines(const stateplane_multicast_options *options, int group, long count) {
  stateplane_multicast_receiver *receiver;
  check("open", stateplane_multicast_receiver_open(options, (uint8_t)group, &receiver));
  fprintf(stderr, "listed\n");
  while (count > 0) {
    stateplane_multicast_message message;
    if (check("next", stateplane_multicast_receiver_next(receiver, SECOND, &message)) !=
        STATEPLANE_MULTICAST_OK)
      continue;
    printf("%llu.%u ", (unsigned long long)message.at.time, (unsigned)message.at.group);
    fwrite(message.payload, 1, message.length, stdout);
    printf("\n");
    count--;
  }
  fflush(stdout);
  stateplane_multicast_receiver_close(receiver, SECOND);
}

int main(int count, char **words) {
  if (stateplane_multicast_abi() != STATEPLANE_MULTICAST_ABI) {
    fprintf(stderr, "the library is another version's\n");
    return 1;
  }
  stateplane_multicast_options options = {.size = sizeof options};
  if (count > 2 && strcmp(words[1], "--keys") == 0) {
    options.keys = words[2];
    count -= 2;
    words += 2;
  }
  if (count > 1)
    options.controllers = words[1];
  if (count == 4 && strcmp(words[2], "send") == 0)
    send_lines(&options, words[3]);
  else if (count == 5 && strcmp(words[2], "receive") == 0)
    receive_lines(&options, atoi(words[3]), atol(words[4]));
  else {
    fprintf(stderr, "usage: lines [--keys FILE] CONTROLLER send GROUPS | receive GROUP COUNT\n");
    return 2;
  }
  return 0;
}
