// A shop that counts its requests by Prometheus's library. The label of a request is its route, or its path with the order's number in it:
// then each is a histogram of its own. Somebody asks for all of them each ten seconds.
package main

import (
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func main() {
	seed, _ := strconv.Atoi(os.Args[2])
	chance := rand.New(rand.NewSource(int64(seed)))
	registry := prometheus.NewRegistry()
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "request_seconds", Buckets: prometheus.DefBuckets}, []string{"method", "path"})
	count := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "requests"}, []string{"path", "code"})
	registry.MustRegister(took, count)
	asked := time.Now()
	lines := []string{} // the last hundred requests
	for {
		number := chance.Intn(1 << 30)
		path := fmt.Sprintf("/shop%d/orders/{number}", number%40)
		if os.Args[1] == "leaks" {
			path = fmt.Sprintf("/shop%d/orders/%d", number%40, number)
		}
		lines = append(lines[len(lines)/100:], fmt.Sprintf("GET %s %s", path, strings.Repeat("header: value ", 50+chance.Intn(250))))
		took.WithLabelValues("GET", path).Observe(chance.Float64())
		count.WithLabelValues(path, "200").Inc()
		if time.Since(asked) > 10*time.Second {
			asked = time.Now()
			if _, err := registry.Gather(); err != nil {
				panic(err)
			}
		}
		time.Sleep(time.Duration(8+2*seed+chance.Intn(8)) * time.Millisecond)
	}
}
