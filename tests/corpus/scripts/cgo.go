// Names that are handed to C for comparison. Each copy for C is freed, or not: Go's collector does not know of them.
package main

/*
#include <stdlib.h>
#include <string.h>
static size_t weight(const char* text) { return strlen(text) + strcspn(text, "z"); }
*/
import "C"

import (
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

func main() {
	seed, _ := strconv.Atoi(os.Args[2])
	chance := rand.New(rand.NewSource(int64(seed)))
	recent := map[int]string{}
	for number := 0; ; number++ {
		text := fmt.Sprintf("document %d: %s", number, strings.Repeat("words ", 300+chance.Intn(1500)))
		copied := C.CString(text)
		recent[number%100] = text[:int(C.weight(copied))%len(text)]
		if os.Args[1] == "steady" {
			C.free(unsafe.Pointer(copied))
		}
		time.Sleep(time.Duration(15+5*seed+chance.Intn(15)) * time.Millisecond)
	}
}
