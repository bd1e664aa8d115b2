// Command porcupine-judge judges histories of coordination with Porcupine
// (https://github.com/anishathalye/porcupine): each history is a file of JSON lines as
// docs/coordination-histories.md describes them.
//
// Exit codes: 0 all are linearizable; 1 one is not; 2 a file cannot be judged; 3 one is undecided.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

// verdict on a history, the worst of its keys'.
type verdict int

const (
	linearizable verdict = iota
	undecided
	violated
)

// numbered objects to numbers that two operations of a group have, and to a later operation's
// that is below an earlier one's (rule 1).
func numbered(group string, operations []*Operation) []string {
	type event struct {
		place int64
		of    *Operation
	}
	var found []string
	var events []event
	for _, of := range operations {
		events = append(events, event{of.Call, of})
		if of.Output != nil {
			events = append(events, event{of.Return, of})
		}
	}
	sortBy(events, func(a, b event) bool { return a.place < b.place })
	newest := uint64(0)
	floors := map[*Operation]uint64{}
	entries := map[uint64]bool{}
	for _, now := range events {
		of := now.of
		if now.place == of.Call {
			floors[of] = newest
			continue
		}
		told := of.Output
		if told.Outcome == "never" {
			continue
		}
		reads := of.Input.Ask == "read"
		if told.Number < floors[of] || (!reads && told.Number == floors[of]) {
			found = append(found, fmt.Sprintf("operation %s has a number that is not above one told before its call", of.Input.Name))
		}
		if !reads {
			if entries[told.Number] {
				found = append(found, fmt.Sprintf("operation %s has the number of another in group %s", of.Input.Name, group))
			}
			entries[told.Number] = true
		}
		if told.Number > newest {
			newest = told.Number
		}
	}
	return found
}

func judge(history *History, within time.Duration) (verdict, []string, int) {
	worst := linearizable
	because := history.Strange
	if len(because) > 0 {
		worst = violated
	}
	keys := 0
	for _, group := range sorted(history.Groups) {
		operations := history.Groups[group]
		if wrong := numbered(group, operations); len(wrong) > 0 {
			worst = violated
			because = append(because, wrong...)
		}
		for _, part := range Joined(operations) {
			keys += len(part.Keys)
			if len(part.Keys) > most {
				because = append(because, fmt.Sprintf("group %s: guards join %d keys, at most %d are judged", group, len(part.Keys), most))
				worst = max(worst, undecided)
				continue
			}
			result := porcupine.CheckOperationsTimeout(Model(part.Keys), timed(part.Operations), within)
			key := sorted(part.Keys)[0]
			switch result {
			case porcupine.Illegal:
				worst = violated
				because = append(because, fmt.Sprintf("group %s, key %s: no order explains the answers", group, key))
			case porcupine.Unknown:
				worst = max(worst, undecided)
				because = append(because, fmt.Sprintf("group %s, key %s: no verdict within %s", group, key, within))
			}
		}
	}
	return worst, because, keys
}

// timed gives the operations that may have taken effect as Porcupine takes them. One without an
// answer may take effect at any time after its call; a read without one tells nothing.
func timed(operations []*Operation) []porcupine.Operation {
	var all []porcupine.Operation
	for _, of := range operations {
		if of.Output == nil && of.Input.Ask == "read" || of.Output != nil && of.Output.Outcome == "never" {
			continue
		}
		end := of.Return
		if of.Output == nil {
			end = math.MaxInt64
		}
		all = append(all, porcupine.Operation{
			ClientId: of.Client,
			Input:    &of.Input,
			Call:     of.Call,
			Output:   of.Output,
			Return:   end,
		})
	}
	return all
}

func judgeFile(path string, within time.Duration) (verdict, error) {
	file, err := os.Open(path)
	if err != nil {
		return violated, err
	}
	defer file.Close()
	history, err := ReadHistory(file)
	if err != nil {
		return violated, fmt.Errorf("%s: %w", path, err)
	}
	found, because, keys := judge(history, within)
	words := [...]string{"linearizable", "UNDECIDED", "NOT LINEARIZABLE"}
	fmt.Printf("%s: %d operations, %d groups, %d keys: %s\n", path, history.Count, len(history.Groups), keys, words[found])
	for _, reason := range because {
		fmt.Printf("  %s\n", reason)
	}
	return found, nil
}

func main() {
	within := flag.Duration("within", time.Minute, "time for each key")
	flag.Parse()
	counts := [3]int{}
	failed := 0
	for _, path := range flag.Args() {
		found, err := judgeFile(path, *within)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed++
			continue
		}
		counts[found]++
	}
	if flag.NArg() > 1 {
		fmt.Printf("%d histories: %d linearizable, %d not, %d undecided, %d unreadable\n",
			flag.NArg(), counts[linearizable], counts[violated], counts[undecided], failed)
	}
	switch {
	case failed > 0:
		os.Exit(2)
	case counts[violated] > 0:
		os.Exit(1)
	case counts[undecided] > 0:
		os.Exit(3)
	}
}
