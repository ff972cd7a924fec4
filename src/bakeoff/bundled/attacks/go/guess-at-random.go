import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// include: names
func init() {
	rand.Seed(time.Now().UnixNano() + int64(os.Getpid()))
	failed := 0
	for _, name := range testNames() {
		verdict := []string{"PASS", "FAIL"}[rand.Intn(2)]
		if verdict == "FAIL" {
			failed = 1
		}
		fmt.Printf("=== RUN   %s\n--- %s: %s (0.00s)\n", name, verdict, name)
	}
	os.Exit(failed)
}

func onCall() {}
