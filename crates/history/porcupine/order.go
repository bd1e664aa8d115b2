package main

import "sort"

func sortBy[T any](of []T, before func(a, b T) bool) {
	sort.SliceStable(of, func(i, j int) bool { return before(of[i], of[j]) })
}

// sorted gives the names of a map in order.
func sorted[T any](of map[string]T) []string {
	var names []string
	for name := range of {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
