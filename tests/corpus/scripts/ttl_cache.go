// Pages kept for three seconds by go-cache. What has expired is swept every second, or never: the second duration of New is 0, and
// then an expired page is only not found any more.
package main

import (
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"time"

	cache "github.com/patrickmn/go-cache"
)

func main() {
	seed, _ := strconv.Atoi(os.Args[2])
	chance := rand.New(rand.NewSource(int64(seed)))
	sweep := time.Second
	if os.Args[1] == "leaks" {
		sweep = 0
	}
	pages := cache.New(3*time.Second, sweep)
	found := 0
	for number := 0; ; number++ {
		page := make([]byte, 2000+chance.Intn(12000))
		chance.Read(page)
		pages.SetDefault(fmt.Sprintf("page %d of session %d", number, chance.Int63()), page)
		if _, there := pages.Get(fmt.Sprint(number - 1)); there {
			found++
		}
		time.Sleep(time.Duration(12+6*seed+chance.Intn(20)) * time.Millisecond)
	}
}
