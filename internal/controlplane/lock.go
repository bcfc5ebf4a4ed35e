// SPDX-License-Identifier: Apache-2.0

//go:build unix

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockPoll is how often a process that waits for the store's lock asks again.
const lockPoll = 200 * time.Millisecond

// lockStore waits until this process alone may change the store.
func (f *finder) lockStore(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(f.store, 0o755); err != nil {
		return nil, fmt.Errorf("the store of binaries cannot be made: %w", err)
	}
	unlock, err = Lock(ctx, filepath.Join(f.store, ".reprise.lock"), func() {
		f.say("another process is preparing the binaries in %s; waiting for it", f.store)
	})
	if err != nil {
		return nil, fmt.Errorf("the store of binaries cannot be locked: %w", err)
	}
	return unlock, nil
}

// Lock waits until this process alone holds the lock of a file, which it makes. waiting is called once if another process has
// it. The kernel drops the lock with the process, so one that was killed holds up nobody.
func Lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := waitForLock(ctx, file, waiting); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return func() { _ = file.Close() }, nil // closing the only descriptor unlocks; there is nothing to lose
}

func waitForLock(ctx context.Context, file *os.File, waiting func()) error {
	told := false
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if !told {
			waiting()
			told = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}
