package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// drawRecorded makes a picture of runs that were recorded earlier, one line for each of specs: NAME=FILE;key=value;… where FILE holds
// rows of JSON: lines (as --json and tests/perf/results/h200 have them), or an object with a list "rows". Each key=value leaves the rows
// whose field key is that; time=FIELD names the field with the microseconds, which otherwise is p50_us, us or ours_us.
func drawRecorded(file, title string, specs []string) error {
	p := &plot{file: file, title: title}
	for _, spec := range specs {
		if err := p.addRecorded(spec); err != nil {
			return fmt.Errorf("--recorded %q: %w", spec, err)
		}
	}
	return p.write()
}

func (p *plot) addRecorded(spec string) error {
	parts := strings.Split(spec, ";")
	name, file, ok := strings.Cut(parts[0], "=")
	if !ok || name == "" || file == "" {
		return fmt.Errorf("it must be NAME=FILE;key=value;…")
	}
	times := []string{"p50_us", "us", "ours_us"}
	want := map[string]string{}
	for _, part := range parts[1:] {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return fmt.Errorf("%q is not key=value", part)
		}
		if key == "time" {
			times = []string{value}
		} else {
			want[key] = value
		}
	}
	rows, err := readRows(file)
	if err != nil {
		return err
	}
	before := len(p.curves)
	for _, row := range rows {
		bytes, us := number(row["bytes"]), 0.0
		for _, t := range times {
			if us == 0 {
				us = number(row[t])
			}
		}
		if us > 0 && fits(row, want) {
			p.add(name, point{bytes, us})
		}
	}
	if len(p.curves) == before {
		return fmt.Errorf("no row of %s fits, or the name was there before", file)
	}
	return nil
}

func fits(row map[string]any, want map[string]string) bool {
	for key, value := range want {
		if fmt.Sprint(row[key]) != value {
			return false
		}
	}
	return true
}

func number(v any) float64 {
	f, _ := v.(float64)
	return f
}

// readRows reads the objects of a file; those with a list "rows" stand for the rows.
func readRows(file string) ([]map[string]any, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var rows []map[string]any
	for d := json.NewDecoder(f); ; {
		var object map[string]any
		if err := d.Decode(&object); err == io.EOF {
			return rows, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		list, ok := object["rows"].([]any)
		if !ok {
			rows = append(rows, object)
			continue
		}
		for _, v := range list {
			if row, ok := v.(map[string]any); ok {
				rows = append(rows, row)
			}
		}
	}
}
