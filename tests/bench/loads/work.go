// SPDX-License-Identifier: Apache-2.0

// Goroutines, maps, sorting, formatting, garbage and system calls, until it is stopped.
package main

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
)

type record struct {
	Name  string            `json:"name"`
	Tags  map[string]string `json:"tags"`
	Parts []int             `json:"parts"`
}

func makeRecord(seed int) record {
	r := record{Name: fmt.Sprintf("record %d", seed), Tags: map[string]string{}}
	for i := 0; i < 40; i++ {
		r.Tags[fmt.Sprintf("tag%d", (seed*31+i*17)%101)] = strings.Repeat("v", i)
		r.Parts = append(r.Parts, (seed*i)%1009)
	}
	sort.Ints(r.Parts)
	return r
}

func squeeze(text []byte) []byte {
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, 6)
	w.Write(text)
	w.Close()
	return out.Bytes()
}

func work(seed int) byte {
	text, err := json.Marshal(makeRecord(seed))
	if err != nil {
		panic(err)
	}
	var back record
	if err := json.Unmarshal(text, &back); err != nil {
		panic(err)
	}
	if file, err := os.Open("/dev/null"); err == nil {
		fmt.Fprintf(file, "%v", back)
		file.Close()
	}
	sum := sha256.Sum256(squeeze(text))
	return sum[0]
}

func main() {
	for round := 0; ; round++ {
		var group sync.WaitGroup
		sums := make(chan byte, 64)
		for i := 0; i < 64; i++ {
			group.Add(1)
			go func(seed int) {
				defer group.Done()
				sums <- work(seed)
			}(round*64 + i)
		}
		group.Wait()
		close(sums)
		for range sums {
		}
	}
}
