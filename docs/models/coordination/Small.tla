------------------------------- MODULE Small -------------------------------
(* Small instances of Coordination for the configurations in this folder.   *)
EXTENDS Coordination, TLC
CONSTANTS s1, s2, s3, Absent, Free

One == <<s1>>
Two == <<s1, s2>>
Three == <<s1, s2, s3>>

(* A write, and a compare-and-swap that its success makes possible. *)
WriteAndSwap ==
  "write" :> [condition |-> Free, value |-> "a"] @@
  "swap" :> [condition |-> "a", value |-> "b"]
OneWrite == "write" :> [condition |-> Free, value |-> "a"]

(* Not invariants: TLC has to reach the opposite, which shows that the rest *)
(* is not true for want of joins and leases.                               *)
NeverPromoted == \A s \in Switches \ Range(FirstChain) :
  ~(IsTail(s) /\ Answerer(s) /\ Len(answered) > 0)
NeverLeasedByTwo == \A s \in Switches :
  ~(Leased(s) /\ Cardinality(Members(epoch[s])) > 1 /\ Len(answered) > 0)
=============================================================================
