// A process that asks etcd by etcd's own client library: one client, whose one connection to the
// leader all goroutines share; a put of 100 bytes under one of a million keys, or a linearizable get
// of one of a thousand that are there. Run with the leader's URL; talks as load-client.ts does.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"sync"
	"time"

	"go.etcd.io/etcd/clientv3"
)

const (
	keyCount   = 1000000
	rowCount   = 1000
	valueBytes = 100
)

type load struct {
	Clients       int     `json:"clients"`
	Seconds       float64 `json:"seconds"`
	WarmUpSeconds float64 `json:"warmUpSeconds"`
	Operation     string  `json:"operation"`
}

type result struct {
	Kind       string  `json:"kind"`
	Operations int     `json:"operations"`
	Failures   int     `json:"failures"`
	ElapsedMs  float64 `json:"elapsedMs"`
	P50Ms      float64 `json:"p50Ms"`
	P95Ms      float64 `json:"p95Ms"`
	P99Ms      float64 `json:"p99Ms"`
	MaxMs      float64 `json:"maxMs"`
}

func main() {
	client, err := clientv3.New(clientv3.Config{Endpoints: os.Args[1:], DialTimeout: 10 * time.Second})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer client.Close()
	fill(client)
	say(map[string]string{"kind": "ready"})
	for given := range loads() {
		runLoops(client, given, given.WarmUpSeconds)
		say(map[string]string{"kind": "warm"})
		say(runLoops(client, given, given.Seconds))
	}
}

// The loads it is told of. When the bench ends it or has ended itself, so does the one under way:
// no terminal and nobody else knows of this process.
func loads() <-chan load {
	told := make(chan load)
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			var given load
			if err := json.Unmarshal(lines.Bytes(), &given); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			told <- given
		}
		os.Exit(0)
	}()
	return told
}

func say(message interface{}) {
	line, _ := json.Marshal(message)
	fmt.Println(string(line))
}

func keyOf(n int) string {
	return fmt.Sprintf("key%07d", n)
}

func randomValue(random *rand.Rand) string {
	value := make([]byte, valueBytes)
	random.Read(value)
	return string(value)
}

// The rows that are read.
func fill(client *clientv3.Client) {
	random := rand.New(rand.NewSource(1))
	for n := 0; n < rowCount; n++ {
		if _, err := client.Put(context.Background(), keyOf(n), randomValue(random)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// Closed loops: each waits for its answer before it asks again; one that fails has no latency.
func runLoops(client *clientv3.Client, given load, seconds float64) result {
	latencies := make([][]float64, given.Clients)
	failures := make([]int, given.Clients)
	start := time.Now()
	end := start.Add(time.Duration(seconds * float64(time.Second)))
	var running sync.WaitGroup
	for i := range latencies {
		running.Add(1)
		go func(i int) {
			defer running.Done()
			random := rand.New(rand.NewSource(start.UnixNano() + int64(i)))
			value := randomValue(random)
			for began := start; began.Before(end); began = time.Now() {
				if ask(client, given.Operation, random, value) != nil {
					failures[i]++
				} else {
					latencies[i] = append(latencies[i], float64(time.Since(began))/float64(time.Millisecond))
				}
			}
		}(i)
	}
	running.Wait()
	elapsedMs := float64(time.Since(start)) / float64(time.Millisecond)
	return resultOf(latencies, failures, elapsedMs)
}

func ask(client *clientv3.Client, operation string, random *rand.Rand, value string) error {
	if operation == "commits" {
		_, err := client.Put(context.Background(), keyOf(random.Intn(keyCount)), value)
		return err
	}
	found, err := client.Get(context.Background(), keyOf(random.Intn(rowCount)))
	if err == nil && len(found.Kvs) == 0 {
		err = fmt.Errorf("a row that was written is not there")
	}
	return err
}

func resultOf(latencies [][]float64, failures []int, elapsedMs float64) result {
	all := []float64{}
	failed := 0
	for i := range latencies {
		all = append(all, latencies[i]...)
		failed += failures[i]
	}
	sort.Float64s(all)
	at := func(share float64) float64 {
		if len(all) == 0 {
			return 0
		}
		place := int(float64(len(all)) * share)
		if place >= len(all) {
			place = len(all) - 1
		}
		return all[place]
	}
	return result{"result", len(all), failed, elapsedMs, at(0.5), at(0.95), at(0.99), at(1)}
}
