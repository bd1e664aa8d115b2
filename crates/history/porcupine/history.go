package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Line is an event as docs/coordination-histories.md describes it.
type Line struct {
	At        uint64  `json:"at"`
	Event     string  `json:"event"`
	Client    uint64  `json:"client"`
	Group     string  `json:"group"`
	Operation uint64  `json:"operation"`
	Ask       string  `json:"ask"`
	Key       string  `json:"key"`
	Value     *string `json:"value"`
	Condition string  `json:"condition"`
	Token     *string `json:"token"`
	Guard     string  `json:"guard"`
	If        string  `json:"if"`
	Session   uint32  `json:"session"`
	Handle    uint32  `json:"handle"`
	Outcome   string  `json:"outcome"`
	Number    string  `json:"number"`
	Kind      string  `json:"kind"`
	Record    string  `json:"record"`
	Before    uint64  `json:"before"`
	List      uint64  `json:"list"`
	What      string  `json:"what"`
}

// Holder owns a lock or waits for it.
type Holder struct{ Session, Handle uint32 }

// Condition is what must hold of a record. The zero value always holds.
type Condition struct {
	Kind   string
	Number uint64
	Value  string
}

// Input is what a client asked.
type Input struct {
	Name      string
	Ask       string
	Key       string
	Value     string
	Condition Condition
	Token     uint64
	Guard     string
	If        Condition
	Holder    Holder
	// Generation that began after it took effect, if it ever did; 0 if no such one is known.
	Before uint64
}

// Output is what a client was told. A nil pointer stands for an operation without an answer.
type Output struct {
	Outcome string
	// Number of the entry; of a read, of the newest entry that the answerer had.
	Number uint64
	// Token of the lock, if the answer tells it.
	Token *uint64
	// The record behind the operation, if Kind is not empty.
	Kind   string
	Record uint64
	Value  *string
}

// Operation is a call and its answer. Call and Return are places in the history: of two events
// the one that stands before happened first.
type Operation struct {
	Client int
	Input  Input
	Call   int64
	Return int64
	Output *Output
}

// number reads generation and count, or 0.
func number(text string) (uint64, error) {
	if text == "" || text == "0" {
		return 0, nil
	}
	generation, count, found := strings.Cut(text, ":")
	if !found {
		return 0, fmt.Errorf("%q is no number like 1:5", text)
	}
	high, err := strconv.ParseUint(generation, 10, 16)
	if err != nil {
		return 0, err
	}
	low, err := strconv.ParseUint(count, 10, 48)
	if err != nil {
		return 0, err
	}
	return high<<48 | low, nil
}

func condition(text string) (Condition, error) {
	kind, rest, _ := strings.Cut(text, ":")
	switch kind {
	case "", "absent", "present":
		return Condition{Kind: kind}, nil
	case "number", "token":
		value, err := number(rest)
		return Condition{Kind: kind, Number: value}, err
	case "value":
		value, err := hex.DecodeString(rest)
		return Condition{Kind: kind, Value: string(value)}, err
	}
	return Condition{}, fmt.Errorf("%q is no condition", text)
}

func input(line *Line) (Input, error) {
	of := Input{
		Name:   fmt.Sprintf("%s/%d", line.Group, line.Operation),
		Ask:    line.Ask,
		Key:    line.Key,
		Guard:  line.Guard,
		Holder: Holder{line.Session, line.Handle},
	}
	switch line.Ask {
	case "read", "write", "delete", "acquire", "wait", "release":
	default:
		return of, fmt.Errorf("nobody asks %q", line.Ask)
	}
	if line.Value != nil {
		value, err := hex.DecodeString(*line.Value)
		if err != nil {
			return of, err
		}
		of.Value = string(value)
	}
	var err error
	if of.Condition, err = condition(line.Condition); err != nil {
		return of, err
	}
	if of.If, err = condition(line.If); err != nil {
		return of, err
	}
	if line.Token != nil {
		of.Token, err = number(*line.Token)
	}
	return of, err
}

func output(line *Line) (*Output, error) {
	of := &Output{Outcome: line.Outcome, Kind: line.Kind}
	var err error
	if of.Number, err = number(line.Number); err != nil {
		return nil, err
	}
	if of.Record, err = number(line.Record); err != nil {
		return nil, err
	}
	if line.Token != nil {
		token, err := number(*line.Token)
		if err != nil {
			return nil, err
		}
		of.Token = &token
	}
	if line.Value != nil {
		value, err := hex.DecodeString(*line.Value)
		if err != nil {
			return nil, err
		}
		text := string(value)
		of.Value = &text
	}
	return of, nil
}

// name of an operation within a history.
type name struct {
	group     string
	operation uint64
}

// list of a client.
type list struct {
	client uint64
	group  string
	list   uint64
}

// History is the operations of each group, in the order of their calls, and what is wrong with
// answers whatever the groups hold: answers without a call, and second answers.
type History struct {
	Groups  map[string][]*Operation
	Strange []string
	Count   int
}

// ReadHistory reads JSON lines.
func ReadHistory(from io.Reader) (*History, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	history := &History{Groups: map[string][]*Operation{}}
	open := map[name]*Operation{}
	lists := map[list]int64{}
	for place := int64(1); lines.Scan(); place++ {
		var line Line
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("line %d: %w", place, err)
		}
		of := name{line.Group, line.Operation}
		switch line.Event {
		case "call":
			asked, err := input(&line)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", place, err)
			}
			if open[of] != nil {
				return nil, fmt.Errorf("line %d: operation %d of group %s is called twice", place, of.operation, of.group)
			}
			operation := &Operation{Client: int(line.Client), Input: asked, Call: place}
			open[of] = operation
			history.Groups[line.Group] = append(history.Groups[line.Group], operation)
			history.Count++
		case "return":
			told, err := output(&line)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", place, err)
			}
			operation := open[of]
			switch {
			case operation == nil:
				history.Strange = append(history.Strange, fmt.Sprintf("line %d: an answer without a call", place))
			case operation.Output != nil:
				history.Strange = append(history.Strange, fmt.Sprintf("line %d: a second answer to operation %d", place, of.operation))
			default:
				operation.Output, operation.Return = told, place
			}
		case "unknown":
			// An unknown outcome is a call without a return.
			if operation := open[of]; operation != nil {
				operation.Input.Before = line.Before
			}
		case "scanned":
			// A scan that shows a record is a read of it, asked when the scan before was answered.
			of := list{line.Client, line.Group, line.List}
			if line.What == "record" {
				told, err := output(&line)
				if err != nil {
					return nil, fmt.Errorf("line %d: %w", place, err)
				}
				told.Outcome = "done"
				asked := Input{Name: fmt.Sprintf("%s/list %d", line.Group, line.List), Ask: "read", Key: line.Key}
				history.Groups[line.Group] = append(history.Groups[line.Group], &Operation{
					Client: int(line.Client), Input: asked, Call: lists[of], Return: place, Output: told,
				})
				history.Count++
			}
			lists[of] = place
		case "serves", "died", "adopted", "applied", "told", "whole":
			// Of members, clients, watches and times.
		default:
			return nil, fmt.Errorf("line %d: no event is named %q", place, line.Event)
		}
	}
	return history, lines.Err()
}
