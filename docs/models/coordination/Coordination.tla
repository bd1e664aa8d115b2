---------------------------- MODULE Coordination ----------------------------
(* One group of the coordination service, one key. "Rule n" is a rule of     *)
(* docs/coordination-protocol.md.                                            *)
(*                                                                           *)
(* A message that was sent stays in `network` for ever and may be received   *)
(* at any time, any number of times, or never: this is loss, delay,          *)
(* duplication and reordering. A switch that never takes a newer             *)
(* configuration lives on in its old one.                                    *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
  Switches,     \* all switches
  FirstChain,   \* members of configuration 1, head first
  Operations,   \* request |-> [condition, value]; condition Always: no condition
  Always,          \* the condition that always holds
  Nothing,      \* no switch, or the value of a record that does not exist
  MaxEpoch,     \* configurations 1..MaxEpoch
  MaxLog,       \* entries in a log, at most
  MaxReads,     \* chain reads that begin, at most
  MaxTime,      \* ticks of the clock, 0..MaxTime; with 0 there are no leases
  Period,       \* ticks for which a promise lasts
  Joins,        \* may switches join?
  Broken        \* the rules that are left out, {} for the protocol as it is

Requests == DOMAIN Operations

VARIABLES
  chains,    \* sequence of configurations: [members, joiner], indexed by epoch
  epoch,     \* switch |-> epoch that it follows, 0: none
  log,       \* switch |-> sequence of entries that it applied
  record,    \* switch |-> the record: [number, value]
  copied,    \* joiner |-> did it take BEGIN and the copy of the record?
  handed,    \* tail |-> did it hand over in its epoch?
  floor,     \* joiner |-> number of the hand-over, or NoFloor
  promise,   \* switch |-> the promise that it gave: [to, until]
  lease,     \* switch |-> its lease lasts while now < lease
  network,   \* all messages ever sent
  now,       \* the clock
  answered   \* history: the longest log of which a client was told

vars == <<chains, epoch, log, record, copied, handed, floor, promise, lease,
          network, now, answered>>

NoFloor == MaxLog + 1
Empty == [number |-> 0, value |-> Nothing]

IsPrefix(a, b) == Len(a) <= Len(b) /\ SubSeq(b, 1, Len(a)) = a
Range(q) == {q[i] : i \in 1..Len(q)}
Last(q) == q[Len(q)]

-----------------------------------------------------------------------------
(* Places in a chain.                                                        *)

Newest == Len(chains)
Members(e) == Range(chains[e].members)
Joiner(e) == chains[e].joiner
Follows(s) == epoch[s] # 0
IsHead(s) == Follows(s) /\ s = chains[epoch[s]].members[1]
IsTail(s) == Follows(s) /\ s = Last(chains[epoch[s]].members)
Joining(s) == Follows(s) /\ s = Joiner(epoch[s])

(* The members head first, then the joiner. *)
Line(e) == chains[e].members \o
           (IF Joiner(e) = Nothing THEN <<>> ELSE <<Joiner(e)>>)
Place(s, e) == CHOOSE i \in 1..Len(Line(e)) : Line(e)[i] = s
Successor(s, e) == IF Place(s, e) < Len(Line(e))
                   THEN Line(e)[Place(s, e) + 1] ELSE Nothing
Predecessor(s, e) == IF Place(s, e) > 1
                     THEN Line(e)[Place(s, e) - 1] ELSE Nothing

(* Rule 14: who promised does nothing in an epoch that does not have the one *)
(* with the lease as member.                                                 *)
Blocked(s) ==
  /\ "promise does not block" \notin Broken
  /\ promise[s].to \notin {Nothing, s}
  /\ promise[s].until >= now
  /\ promise[s].to \notin Members(epoch[s])

Acts(s) == Follows(s) /\ ~Blocked(s)

(* Rule 13. *)
Answerer(s) ==
  /\ Acts(s)
  /\ \/ IsTail(s) /\ ~handed[s]
     \/ /\ Joining(s)
        /\ floor[s] # NoFloor
        /\ Len(log[s]) >= floor[s] \/ "hand-over floor ignored" \in Broken

Leased(s) == Answerer(s) /\ (\/ now < lease[s]
                             \/ MaxTime > 0 /\ "no lease needed" \in Broken)

-----------------------------------------------------------------------------
(* Messages.                                                                 *)

Entry(e, from, n, entry) ==
  [type |-> "ENTRY", epoch |-> e, from |-> from, number |-> n, entry |-> entry]
Entries(s, q) == {Entry(epoch[s], s, n, q[n]) : n \in 1..Len(q)}

(* A message of the chain counts in its own epoch (rule 9). *)
Takes(s, m) == Acts(s) /\ m.epoch = epoch[s]

-----------------------------------------------------------------------------
(* The head decides (rules 1, 3, 5).                                         *)

Decide(request, r) ==
  LET op == Operations[request]
      holds == op.condition = Always \/ op.condition = r.value
  IN [request |-> request,
      outcome |-> IF holds THEN "DONE" ELSE "MISMATCH",
      value |-> IF holds THEN op.value ELSE r.value]

(* The record after entry number n; of slots the higher number stays. *)
After(r, n, entry) ==
  IF n > r.number /\ entry.outcome = "DONE"
  THEN [number |-> n, value |-> entry.value] ELSE r

Take(s, n, entry) ==
  /\ log' = [log EXCEPT ![s] = Append(@, entry)]
  /\ record' = [record EXCEPT ![s] = After(@, n, entry)]
  /\ network' = network \cup
       (IF Successor(s, epoch[s]) = Nothing THEN {}
        ELSE {Entry(epoch[s], s, Len(log[s]) + 1, entry)})

Known(s, request) == \E i \in 1..Len(log[s]) : log[s][i].request = request

(* A request may come to the head at any time, also again. *)
Request(s, request) ==
  /\ Acts(s) /\ IsHead(s) /\ Len(log[s]) < MaxLog
  /\ ~Known(s, request) \/ "duplicates as new writes" \in Broken
  /\ Take(s, Len(log[s]) + 1, Decide(request, record[s]))
  /\ UNCHANGED <<chains, epoch, copied, handed, floor, promise, lease, now,
                 answered>>

(* ASK and its answer: all that the member has goes to its successor. *)
Resend(s) ==
  /\ Acts(s) /\ Successor(s, epoch[s]) # Nothing
  /\ ~(Entries(s, log[s]) \subseteq network)
  /\ network' = network \cup Entries(s, log[s])
  /\ UNCHANGED <<chains, epoch, log, record, copied, handed, floor, promise,
                 lease, now, answered>>

(* Rule 2: exactly the next number, from the predecessor, in one epoch. *)
Apply(s, m) ==
  /\ m.type = "ENTRY" /\ Acts(s) /\ Len(log[s]) < MaxLog
  /\ \/ m.epoch = epoch[s] /\ m.from = Predecessor(s, epoch[s])
     \/ "epoch ignored" \in Broken /\ m.from # s
  /\ \/ m.number = Len(log[s]) + 1
     \/ m.number > Len(log[s]) /\ "exactly next not needed" \in Broken
  /\ Joining(s) => copied[s]
  /\ Take(s, m.number, IF "CAS judged at each hop" \in Broken
                THEN Decide(m.entry.request, record[s]) ELSE m.entry)
  /\ UNCHANGED <<chains, epoch, copied, handed, floor, promise, lease, now,
                 answered>>

-----------------------------------------------------------------------------
(* Answers. Those of writes are an action; reads are judged by invariants.   *)

Answer(s) ==
  /\ Answerer(s) /\ Len(log[s]) > Len(answered)
  /\ answered' = log[s]
  /\ UNCHANGED <<chains, epoch, log, record, copied, handed, floor, promise,
                 lease, network, now>>

(* A chain read (rule 14) begins: `seen` is what clients know by then. *)
Pass(e, to, seen) == [type |-> "PASS", epoch |-> e, to |-> to, seen |-> seen]

BeginRead(s) ==
  /\ Acts(s) /\ IsHead(s) /\ Len(answered) > 0
  /\ Cardinality({m \in network : m.type = "PASS" /\ Place(m.to, m.epoch) = 1})
       < MaxReads
  /\ LET m == Pass(epoch[s], s, Len(answered))
     IN m \notin network /\ network' = network \cup {m}
  /\ UNCHANGED <<chains, epoch, log, record, copied, handed, floor, promise,
                 lease, now, answered>>

PassOn(s, m) ==
  /\ m.type = "PASS" /\ m.to = s /\ Takes(s, m) /\ ~Answerer(s)
  /\ Successor(s, m.epoch) # Nothing
  /\ LET to == IF "read skips members" \in Broken
               THEN Last(chains[m.epoch].members) ELSE Successor(s, m.epoch)
         next == Pass(m.epoch, to, m.seen)
     IN next \notin network /\ network' = network \cup {next}
  /\ UNCHANGED <<chains, epoch, log, record, copied, handed, floor, promise,
                 lease, now, answered>>

-----------------------------------------------------------------------------
(* Leases (rule 14). A round goes along the other members, then back.        *)

Others(e, s) == SelectSeq(chains[e].members, LAMBDA x : x # s)

Round(e, to, holder, began) ==
  [type |-> "LEASE", epoch |-> e, to |-> to, holder |-> holder, began |-> began]

BeginRound(s) ==
  /\ MaxTime > 0 /\ Answerer(s)
  /\ LET others == Others(epoch[s], s)
         to == IF others = <<>> THEN s ELSE others[1]
         m == Round(epoch[s], to, s, now)
     IN m \notin network /\ network' = network \cup {m}
  /\ UNCHANGED <<chains, epoch, log, record, copied, handed, floor, promise,
                 lease, now, answered>>

Promise(s, m) ==
  /\ m.type = "LEASE" /\ m.to = s /\ m.holder # s /\ Takes(s, m)
  /\ \/ promise[s].to \in {Nothing, m.holder}
     \/ promise[s].until < now
  /\ promise' = [promise EXCEPT ![s] = [to |-> m.holder, until |-> now + Period]]
  /\ LET others == Others(m.epoch, m.holder)
         i == CHOOSE k \in 1..Len(others) : others[k] = s
         to == IF i < Len(others) THEN others[i + 1] ELSE m.holder
     IN network' = network \cup {Round(m.epoch, to, m.holder, m.began)}
  /\ UNCHANGED <<chains, epoch, log, record, copied, handed, floor, lease, now,
                 answered>>

TakeLease(s, m) ==
  /\ m.type = "LEASE" /\ m.to = s /\ m.holder = s /\ Takes(s, m) /\ Answerer(s)
  /\ m.began + Period > lease[s] /\ m.began + Period > now
  /\ lease' = [lease EXCEPT ![s] = m.began + Period]
  /\ UNCHANGED <<chains, epoch, log, record, copied, handed, floor, promise,
                 network, now, answered>>

Tick ==
  /\ now < MaxTime /\ now' = now + 1
  /\ UNCHANGED <<chains, epoch, log, record, copied, handed, floor, promise,
                 lease, network, answered>>

-----------------------------------------------------------------------------
(* A switch joins (rules 13, 15).                                            *)

(* The tail sends BEGIN. The log in it stands for the lanes of that moment. *)
Begin(s) ==
  /\ Acts(s) /\ IsTail(s) /\ Joiner(epoch[s]) # Nothing /\ ~handed[s]
  /\ LET m == [type |-> "BEGIN", epoch |-> epoch[s], log |-> log[s]]
     IN m \notin network /\ network' = network \cup {m}
  /\ UNCHANGED <<chains, epoch, log, record, copied, handed, floor, promise,
                 lease, now, answered>>

(* COPY is read from the tail later than BEGIN, and may be newer. *)
Copy(s) ==
  /\ Acts(s) /\ IsTail(s) /\ ~handed[s]
  /\ \E b \in network : b.type = "BEGIN" /\ b.epoch = epoch[s]
  /\ LET m == [type |-> "COPY", epoch |-> epoch[s], record |-> record[s],
               upto |-> Len(log[s])]
     IN m \notin network /\ network' = network \cup {m}
  /\ UNCHANGED <<chains, epoch, log, record, copied, handed, floor, promise,
                 lease, now, answered>>

(* The joiner has the copy of a round: BEGIN, and a COPY sent after it. *)
TakeCopy(s, b, c) ==
  /\ b.type = "BEGIN" /\ c.type = "COPY" /\ Takes(s, b) /\ Takes(s, c)
  /\ Joining(s) /\ ~copied[s] /\ c.upto >= Len(b.log)
  /\ copied' = [copied EXCEPT ![s] = TRUE]
  /\ log' = [log EXCEPT ![s] = IF Len(b.log) > Len(@) THEN b.log ELSE @]
  /\ record' = [record EXCEPT ![s] =
                  IF c.record.number > @.number THEN c.record ELSE @]
  /\ UNCHANGED <<chains, epoch, handed, floor, promise, lease, network, now,
                 answered>>

HandOver(s) ==
  /\ Acts(s) /\ IsTail(s) /\ Joiner(epoch[s]) # Nothing /\ ~handed[s]
  /\ copied[Joiner(epoch[s])] /\ epoch[Joiner(epoch[s])] = epoch[s]
  /\ handed' = [handed EXCEPT ![s] = TRUE]
  /\ lease' = [lease EXCEPT ![s] = 0]
  /\ network' = network \cup
       {[type |-> "HAND_OVER", epoch |-> epoch[s], number |-> Len(log[s])]}
  /\ UNCHANGED <<chains, epoch, log, record, copied, floor, promise, now,
                 answered>>

TakeHandOver(s, m) ==
  /\ m.type = "HAND_OVER" /\ Takes(s, m) /\ Joining(s) /\ floor[s] = NoFloor
  /\ floor' = [floor EXCEPT ![s] = m.number]
  /\ UNCHANGED <<chains, epoch, log, record, copied, handed, promise, lease,
                 network, now, answered>>

(* The joiner tells the controller that it answers. *)
TellJoined(s) ==
  /\ Joining(s) /\ Answerer(s)
  /\ LET m == [type |-> "JOINED", epoch |-> epoch[s]]
     IN m \notin network /\ network' = network \cup {m}
  /\ UNCHANGED <<chains, epoch, log, record, copied, handed, floor, promise,
                 lease, now, answered>>

-----------------------------------------------------------------------------
(* Configurations (rules 9, 12).                                             *)

(* The controller removes members at any position, alive or not; lets a      *)
(* switch join; makes it a member once it answered as joiner; gives it up.   *)
Configure ==
  /\ Newest < MaxEpoch
  /\ LET members == chains[Newest].members
         joiner == Joiner(Newest)
     IN \E next \in
          [members : {SelectSeq(members, LAMBDA x : x \in keep) :
                        keep \in SUBSET Range(members) \ {{}, Range(members)}},
           joiner : {joiner, Nothing}]
          \cup (IF joiner # Nothing THEN {[members |-> members, joiner |-> Nothing]}
                ELSE {})
          \cup (IF Joins /\ joiner = Nothing
                THEN [members : {members}, joiner : Switches \ Range(members)]
                ELSE {})
          \cup (IF joiner # Nothing
                   /\ \/ [type |-> "JOINED", epoch |-> Newest] \in network
                      \/ "joined not needed" \in Broken
                THEN {[members |-> Append(members, joiner), joiner |-> Nothing]}
                ELSE {}) :
          chains' = Append(chains, next)
  /\ UNCHANGED <<epoch, log, record, copied, handed, floor, promise, lease,
                 network, now, answered>>

(* A switch takes a newer configuration, perhaps late, perhaps not the       *)
(* newest. Who was no member and did not join is not made a member.          *)
Adopt(s, e) ==
  /\ e > epoch[s] /\ s \in Range(Line(e))
  /\ s \in Members(e) => Follows(s)
  /\ LET begins == /\ s = Joiner(e) /\ ~Joining(s)
                   /\ "joiner not emptied" \notin Broken
     IN /\ log' = [log EXCEPT ![s] = IF begins THEN <<>> ELSE @]
        /\ record' = [record EXCEPT ![s] = IF begins THEN Empty ELSE @]
  /\ epoch' = [epoch EXCEPT ![s] = e]
  /\ copied' = [copied EXCEPT ![s] = FALSE]
  /\ handed' = [handed EXCEPT ![s] = FALSE]
  /\ floor' = [floor EXCEPT ![s] = NoFloor]
  /\ lease' = [lease EXCEPT ![s] = 0]
  /\ UNCHANGED <<chains, promise, network, now, answered>>

-----------------------------------------------------------------------------

Init ==
  /\ chains = <<[members |-> FirstChain, joiner |-> Nothing]>>
  /\ epoch = [s \in Switches |-> IF s \in Range(FirstChain) THEN 1 ELSE 0]
  /\ log = [s \in Switches |-> <<>>]
  /\ record = [s \in Switches |-> Empty]
  /\ copied = [s \in Switches |-> FALSE]
  /\ handed = [s \in Switches |-> FALSE]
  /\ floor = [s \in Switches |-> NoFloor]
  /\ promise = [s \in Switches |-> [to |-> Nothing, until |-> 0]]
  /\ lease = [s \in Switches |-> 0]
  /\ network = {}
  /\ now = 0
  /\ answered = <<>>

Next ==
  \/ Configure \/ Tick
  \/ \E s \in Switches :
       \/ \E r \in Requests : Request(s, r)
       \/ \E e \in 1..Newest : Adopt(s, e)
       \/ Resend(s) \/ Answer(s) \/ BeginRead(s) \/ BeginRound(s)
       \/ Begin(s) \/ Copy(s) \/ HandOver(s) \/ TellJoined(s)
       \/ \E m \in network : \/ Apply(s, m) \/ PassOn(s, m) \/ Promise(s, m)
                             \/ TakeLease(s, m) \/ TakeHandOver(s, m)
       \/ \E b, c \in network : TakeCopy(s, b, c)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* What is promised.                                                         *)

(* Whatever is or may be answered is a beginning of one order. *)
NoFork == \A s \in Switches :
  Answerer(s) => IsPrefix(log[s], answered) \/ IsPrefix(answered, log[s])

(* A chain read that reaches the answerer shows all that clients knew when   *)
(* it began.                                                                 *)
NoStaleChainRead == \A m \in network :
  m.type = "PASS" /\ Takes(m.to, m) /\ Answerer(m.to)
    => Len(log[m.to]) >= m.seen

(* Lease safety: who may answer reads alone has all that was ever answered. *)
NoStaleLeasedRead == \A s \in Switches :
  Leased(s) => IsPrefix(answered, log[s])

AtMostOnce == \A s \in Switches : \A i, j \in 1..Len(log[s]) :
  log[s][i].request = log[s][j].request => i = j

(* Failover loses nothing, and who joined has everything. *)
MembersHoldAnswered == \A s \in Members(Newest) : IsPrefix(answered, log[s])

(* The record that an answerer shows is the one that its log makes. *)
RecordOf(q) ==
  LET f[i \in 0..Len(q)] == IF i = 0 THEN Empty ELSE After(f[i - 1], i, q[i])
  IN f[Len(q)]
RecordIsLogs == \A s \in Switches : Answerer(s) => record[s] = RecordOf(log[s])
=============================================================================
