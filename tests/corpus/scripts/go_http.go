// A server with a map of what it has seen, cut back or not.
package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
)

func main() {
	seen, order := map[string]string{}, []string{}
	var lock sync.Mutex
	http.HandleFunc("/", func(answer http.ResponseWriter, request *http.Request) {
		lock.Lock()
		defer lock.Unlock()
		seen[request.URL.Path] = strings.Repeat("x", 3000)
		order = append(order, request.URL.Path)
		if os.Args[1] == "steady" && len(order) > 300 {
			delete(seen, order[0])
			order = order[1:]
		}
		fmt.Fprint(answer, seen[request.URL.Path])
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[3], nil)
}
