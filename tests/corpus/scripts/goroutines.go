// Requests to a slow backend with a time limit. The one that answers too late sends into a channel that nobody reads
// any more and waits for ever, unless the channel has room for one answer.
package main

import (
	"math/rand"
	"os"
	"strconv"
	"strings"
	"time"
)

func ask(room int, chance *rand.Rand) int {
	answers := make(chan string, room)
	size, late := 1000+chance.Intn(5000), chance.Intn(3) > 0
	go func() {
		body := strings.Repeat("x", size)
		if late {
			time.Sleep(30 * time.Millisecond)
		}
		answers <- body
		if len(body) == 0 {
			panic("nothing")
		}
	}()
	select {
	case answer := <-answers:
		return len(answer)
	case <-time.After(10 * time.Millisecond):
		return 0
	}
}

func main() {
	seed, _ := strconv.ParseInt(os.Args[2], 10, 64)
	chance := rand.New(rand.NewSource(seed))
	room := 1
	if os.Args[1] == "leaks" {
		room = 0
	}
	pause := time.Duration(8+chance.Intn(10)) * time.Millisecond
	for {
		ask(room, chance)
		time.Sleep(pause)
	}
}
