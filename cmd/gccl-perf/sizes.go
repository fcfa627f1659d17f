package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// parseSize reads a byte count as nccl-tests does: digits, then nothing or one of K, M, G (powers of 1024).
// A fraction is allowed ("1.5M").
func parseSize(text string) (int64, error) {
	number, unit := text, int64(1)
	if n := len(text); n > 0 {
		switch text[n-1] {
		case 'k', 'K':
			unit = 1 << 10
		case 'm', 'M':
			unit = 1 << 20
		case 'g', 'G':
			unit = 1 << 30
		}
		if unit > 1 {
			number = text[:n-1]
		}
	}
	bad := func() (int64, error) {
		return 0, fmt.Errorf("%q is no size; write bytes as 8, 64K, 1.5M or 1G", text)
	}
	if number == "" || strings.ContainsAny(number, "eExXpP_+-") {
		return bad()
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return bad()
	}
	bytes := v * float64(unit)
	if bytes > 1<<50 {
		return 0, fmt.Errorf("size %q is larger than this tool handles (1 PiB)", text)
	}
	return int64(bytes), nil
}

// formatSize is the shortest exact form of a byte count.
func formatSize(bytes int64) string {
	for _, u := range []struct {
		unit int64
		name string
	}{{1 << 30, "G"}, {1 << 20, "M"}, {1 << 10, "K"}} {
		if bytes >= u.unit && bytes%u.unit == 0 {
			return strconv.FormatInt(bytes/u.unit, 10) + u.name
		}
	}
	return strconv.FormatInt(bytes, 10)
}

// sweep lists the sizes from lowest to highest: by factor where factor > 1, else by step bytes.
func sweep(lowest, highest, step int64, factor int) []int64 {
	var sizes []int64
	for s := lowest; s <= highest; {
		sizes = append(sizes, s)
		next := s + step
		if factor > 1 {
			next = s * int64(factor)
		}
		if next <= s { // size 0 cannot be multiplied
			break
		}
		s = next
	}
	return sizes
}
