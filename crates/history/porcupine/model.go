package main

import (
	"sort"

	"github.com/anishathalye/porcupine"
)

// waiters is how many requests wait for a lock at most (rule 20).
const waiters = 14

// anywhere stands for the number of an entry that no answer has told.
const anywhere = ^uint64(0)

// Record of a key. Its number, and the token of a lock, are `anywhere` if the operation that
// made them has no answer; the first answer that shows the number binds it.
type Record struct {
	kind      string // "value", "lock" or "empty"; "" without a record
	number    uint64
	seenToken uint64
	value     string
	owner     Holder
	token     uint64
	waiting   [waiters]Holder
	queued    int
}

// State of the keys that guards join: records in the order of `keys`, and the number of the
// newest entry that an answer told.
type State struct {
	newest  uint64
	records [most]Record
}

// most keys that guards join.
const most = 4

func (record Record) present() bool { return record.kind != "" && record.kind != "empty" }

// may tells whether a number of the state can be the one told.
func may(own, told uint64) bool { return own == told || own == anywhere }

// holds tells whether the condition may hold and whether it may fail: both where a number is
// not known.
func holds(condition Condition, record Record) (yes, no bool) {
	is := false
	switch condition.Kind {
	case "":
		is = true
	case "absent":
		is = !record.present()
	case "present":
		is = record.present()
	case "value":
		is = record.kind == "value" && record.value == condition.Value
	case "number", "token":
		own := record.number
		here := record.present()
		if condition.Kind == "token" {
			own, here = record.token, record.kind == "lock"
		}
		if here && own == anywhere {
			return true, true
		}
		is = here && own == condition.Number
	}
	return is, !is
}

// bound is the record after a condition on its number held.
func bound(condition Condition, record Record) Record {
	switch {
	case condition.Kind == "number" && record.number == anywhere:
		record.number = condition.Number
	case condition.Kind == "token" && record.token == anywhere:
		record.token = condition.Number
	}
	return record
}

// decision is an outcome and the record afterwards.
type decision struct {
	outcome string
	record  Record
}

// decide gives all that the head may decide of a request whose guard holds (rules 3, 20, 21).
func decide(asked *Input, record Record, number uint64) []decision {
	switch asked.Ask {
	case "read":
		if record.present() {
			return []decision{{"done", record}}
		}
		return []decision{{"absent", record}}
	case "write", "delete":
		return written(asked, record, number)
	case "release":
		return []decision{released(asked, record, number)}
	}
	return []decision{acquired(asked, record, number)}
}

func written(asked *Input, record Record, number uint64) []decision {
	if asked.Token < record.seenToken {
		return []decision{{"stale-token", record}}
	}
	if record.kind == "lock" {
		return []decision{{"wrong-kind", record}}
	}
	yes, no := holds(asked.Condition, record)
	var all []decision
	if no {
		all = append(all, decision{"mismatch", record})
	}
	if !yes {
		return all
	}
	before := bound(asked.Condition, record)
	seen := before.seenToken
	if asked.Token > seen {
		seen = asked.Token
	}
	switch {
	case asked.Ask == "write":
		all = append(all, decision{"done", Record{kind: "value", number: number, seenToken: seen, value: asked.Value}})
	case !before.present():
		all = append(all, decision{"absent", before})
	case seen == 0:
		all = append(all, decision{"done", Record{}})
	default:
		all = append(all, decision{"done", Record{kind: "empty", number: number, seenToken: seen}})
	}
	return all
}

func (record Record) place(of Holder) int {
	for at := 0; at < record.queued; at++ {
		if record.waiting[at] == of {
			return at
		}
	}
	return -1
}

func (record Record) without(at int) Record {
	copy(record.waiting[at:], record.waiting[at+1:])
	record.waiting[waiters-1] = Holder{}
	record.queued--
	return record
}

func acquired(asked *Input, record Record, number uint64) decision {
	waits := asked.Ask == "wait"
	switch {
	case record.kind == "":
		return decision{"done", Record{kind: "lock", number: number, owner: asked.Holder, token: number}}
	case record.kind != "lock":
		return decision{"wrong-kind", record}
	case record.owner == asked.Holder:
		return decision{"done", record}
	case !waits:
		return decision{"taken", record}
	case record.place(asked.Holder) >= 0:
		return decision{"queued", record}
	case record.queued == waiters:
		return decision{"full", record}
	}
	record.waiting[record.queued] = asked.Holder
	record.queued++
	record.number = number
	return decision{"queued", record}
}

func released(asked *Input, record Record, number uint64) decision {
	switch {
	case record.kind == "":
		return decision{"absent", record}
	case record.kind != "lock":
		return decision{"wrong-kind", record}
	case record.owner == asked.Holder && record.queued == 0:
		return decision{"done", Record{}}
	case record.owner == asked.Holder:
		record.owner, record.token = record.waiting[0], number
		record = record.without(0)
	default:
		at := record.place(asked.Holder)
		if at < 0 {
			return decision{"not-owner", record}
		}
		record = record.without(at)
	}
	record.number = number
	return decision{"done", record}
}

// shown is the record as an answer shows it, with its numbers bound; false if it is another.
func shown(told *Output, record Record) (Record, bool) {
	if told.Token != nil {
		if record.kind != "lock" || !may(record.token, *told.Token) {
			return record, false
		}
		record.token = *told.Token
	}
	if told.Kind == "" {
		return record, true
	}
	kind := record.kind
	if kind == "" {
		kind = "none"
	}
	if kind != told.Kind || !may(record.number, told.Record) {
		return record, false
	}
	if told.Value != nil && kind == "value" && *told.Value != record.value {
		return record, false
	}
	record.number = told.Record
	return record, true
}

// steps gives the states that may follow an operation, with `keys` the places of records.
func steps(keys map[string]int, state State, asked *Input, told *Output) []State {
	number := anywhere
	if told != nil {
		number = told.Number
		// A group that is founded anew begins empty (rule 17).
		if number>>48 > state.newest>>48 && state.newest != 0 {
			state.records = [most]Record{}
		}
		// Entries are in the order of their numbers; a read stands behind its newest (rule 1).
		if number < state.newest || (asked.Ask != "read" && number == state.newest) {
			return nil
		}
		state.newest = number
	} else if asked.Before != 0 && state.newest>>48 >= asked.Before {
		return nil
	}
	var all []State
	at := keys[asked.Key]
	reached := func(from State, of decision) {
		if told != nil {
			if of.outcome != told.Outcome {
				// A record that has no place yet may find none.
				noPlace := told.Outcome == "full" && of.outcome == "done" && from.records[at].kind == "" && asked.Ask != "delete"
				if !noPlace {
					return
				}
				of.record = from.records[at]
			}
			record, same := shown(told, of.record)
			if !same {
				return
			}
			of.record = record
		}
		from.records[at] = of.record
		all = append(all, from)
	}
	if asked.Guard != "" {
		guard := keys[asked.Guard]
		yes, no := holds(asked.If, state.records[guard])
		if no {
			reached(state, decision{"guarded", state.records[at]})
		}
		if !yes {
			return all
		}
		state.records[guard] = bound(asked.If, state.records[guard])
	}
	for _, of := range decide(asked, state.records[at], number) {
		reached(state, of)
	}
	return all
}

// Model of the keys that guards join.
func Model(keys map[string]int) porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{State{}} },
		Step: func(state, input, output interface{}) []interface{} {
			told, _ := output.(*Output)
			var all []interface{}
			for _, next := range steps(keys, state.(State), input.(*Input), told) {
				all = append(all, next)
			}
			return all
		},
		Equal: func(a, b interface{}) bool { return a.(State) == b.(State) },
	}
	return model.ToModel()
}

// Joined gives the operations of a group apart for keys that no guard joins, with the place of
// each key.
func Joined(operations []*Operation) []Part {
	root := map[string]string{}
	var find func(key string) string
	find = func(key string) string {
		if above, known := root[key]; known && above != key {
			return find(above)
		}
		root[key] = key
		return key
	}
	for _, of := range operations {
		key := find(of.Input.Key)
		if of.Input.Guard != "" {
			root[find(of.Input.Guard)] = key
		}
	}
	parts := map[string]*Part{}
	for _, of := range operations {
		name := find(of.Input.Key)
		part := parts[name]
		if part == nil {
			part = &Part{Keys: map[string]int{}}
			parts[name] = part
		}
		for _, key := range []string{of.Input.Key, of.Input.Guard} {
			if _, known := part.Keys[key]; !known && key != "" {
				part.Keys[key] = len(part.Keys)
			}
		}
		part.Operations = append(part.Operations, of)
	}
	var names []string
	for name := range parts {
		names = append(names, name)
	}
	sort.Strings(names)
	var all []Part
	for _, name := range names {
		all = append(all, *parts[name])
	}
	return all
}

// Part is the operations on keys that guards join.
type Part struct {
	Keys       map[string]int
	Operations []*Operation
}
