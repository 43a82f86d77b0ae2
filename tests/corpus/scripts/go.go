// Requests with a deadline: the goroutine that answers after it blocks for ever on a channel nobody reads.
package main

import (
	"encoding/json"
	"math/rand"
	"os"
	"strconv"
	"time"
)

func main() {
	seed, _ := strconv.Atoi(os.Args[2])
	random := rand.New(rand.NewSource(int64(seed)))
	size := 1
	if os.Args[1] == "leaks" {
		size = 0
	}
	for {
		answers := make(chan []byte, size)
		number := random.Intn(1000)
		go func() {
			text, _ := json.Marshal(map[string]interface{}{"n": number, "body": make([]byte, 500+number)})
			answers <- text
		}()
		churn := make([][]byte, 0)
		for i := 0; i < 20; i++ {
			churn = append(churn, make([]byte, random.Intn(8192)))
		}
		_ = churn
		time.Sleep(time.Duration(10+random.Intn(20)) * time.Millisecond)
	}
}
