// SPDX-License-Identifier: Apache-2.0

// Go: goroutines, channels, defer, panic and recover, maps, closures, garbage collection.
package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"sort"
	"strings"
)

type shape interface{ area() float64 }
type square struct{ side float64 }
type circle struct{ radius float64 }

//go:noinline
func (s square) area() float64 { return s.side * s.side }

//go:noinline
func (c *circle) area() float64 { return math.Pi * c.radius * c.radius }

//go:noinline
func recurse(depth int) int {
	var pad [64]byte
	pad[depth%64] = byte(depth)
	if depth == 0 {
		return 1
	}
	return recurse(depth-1) + int(pad[depth%64])
}

//go:noinline
func panics(depth int) {
	defer func() { sink++ }()
	if depth == 0 {
		panic("deep")
	}
	panics(depth - 1)
}

//go:noinline
func recovers() (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	panics(3)
	return ""
}

var sink int

func main() {
	runtime.LockOSThread()
	results := make(chan int)
	for i := 0; i < 3; i++ {
		go func(n int) { results <- recurse(n * 20) }(i)
	}
	for i := 0; i < 3; i++ {
		sink += <-results
	}
	shapes := []shape{square{3}, &circle{2}}
	for _, s := range shapes {
		sink += int(s.area())
	}
	counts := map[string]int{}
	for _, word := range strings.Fields("the quick brown fox jumps over the lazy dog") {
		counts[word]++
	}
	words := make([]string, 0)
	for word := range counts {
		words = append(words, word)
	}
	sort.Strings(words)
	sink += len(recovers()) + recurse(200)
	runtime.GC()
	fmt.Fprintf(os.Stderr, "")
}
