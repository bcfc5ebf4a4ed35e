// SPDX-License-Identifier: Apache-2.0

package process

import (
	"net"
	"os"
	"os/exec"
	"testing"
)

func TestTheProcessAtTheOtherEndOfAConnectionIsFound(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	connection, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	port := connection.LocalAddr().(*net.TCPAddr).Port
	me, parent := &child{cmd: &exec.Cmd{Process: &os.Process{Pid: os.Getpid()}}}, &child{cmd: &exec.Cmd{Process: &os.Process{Pid: os.Getppid()}}}
	if found := ownerOf(port, []*child{parent, me}); found != me {
		t.Errorf("found %v, want this process", found)
	}
	if found := ownerOf(port, []*child{parent}); found != nil {
		t.Errorf("found %v among processes that do not have the connection", found)
	}
	if err := connection.Close(); err != nil {
		t.Fatal(err)
	}
	if found := ownerOf(port, []*child{me}); found != nil {
		t.Errorf("found %v for a connection that is closed", found)
	}
}
