// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// A parent that is killed cannot clean up, so its children have to go by themselves. The child here holds a connection
// to the test, whose end is seen without asking for process numbers.
func TestChildrenDieWithAParentThatIsKilled(t *testing.T) {
	dir := shortDir(t)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	parent := startHelper(t, "parent", dir)
	connection, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := connection.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(connection)
	if line, err := reader.ReadString('\n'); line != "alive\n" {
		t.Fatalf("the child says %q (%v)", line, err)
	}
	parent.kill()
	if _, err := reader.ReadByte(); err != io.EOF {
		t.Errorf("the connection to the child: %v, want its end", err)
	}
}
