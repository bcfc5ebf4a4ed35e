// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bufio"
	"errors"
	"io"
	"sync"

	"reprise.dev/reprise/internal/plugin/cli"
)

// lines writes lines of several sources, each of them whole.
type lines struct {
	f  *cli.Factory
	mu sync.Mutex
}

// copy writes every line of a source, with a prefix.
func (l *lines) copy(prefix string, from io.Reader) error {
	for r := bufio.NewReader(from); ; {
		line, err := r.ReadString('\n')
		if line != "" {
			if wrote := l.write(prefix, line); wrote != nil {
				return wrote
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (l *lines) write(prefix, line string) error {
	if line[len(line)-1] != '\n' {
		line += "\n" // another source may go on here
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := io.WriteString(l.f.Out, prefix+line)
	return err
}
