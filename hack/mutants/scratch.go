// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// scratch is a copy of the checkout in which mutants are made, so that none is ever left behind in the checkout.
type scratch struct{ dir string }

// newScratch copies the files of the checkout at root that git knows or does not ignore, as they are now, into a new temporary
// directory.
func newScratch(ctx context.Context, root string) (scratch, error) {
	dir, err := os.MkdirTemp("", "reprise-mutants-")
	if err != nil {
		return scratch{}, err
	}
	s := scratch{dir: dir}
	if err := s.fill(ctx, root); err != nil {
		return scratch{}, errors.Join(fmt.Errorf("copying the checkout: %w", err), s.remove())
	}
	return s, nil
}

func (s scratch) remove() error { return os.RemoveAll(s.dir) }

func (s scratch) fill(ctx context.Context, root string) error {
	command := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	command.Dir, command.Stderr = root, os.Stderr
	listed, err := command.Output()
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(string(listed), "\x00") {
		if name == "" {
			continue
		}
		if err := copyFile(filepath.Join(root, name), filepath.Join(s.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a regular file with its mode. What is nothing of the kind, or deleted and still known to git, is left out.
func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && !info.Mode().IsRegular()) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// with makes the edits, calls f, and puts the files back as they were. It makes none of them, and does not call f, if one cannot be
// made.
func (s scratch) with(edits []edit, f func()) (err error) {
	before, after, err := s.edited(edits)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.write(before)) }()
	if err := s.write(after); err != nil {
		return err
	}
	f()
	return nil
}

// edited returns the contents of the files that the edits are about, without and with them.
func (s scratch) edited(edits []edit) (before, after map[string]string, err error) {
	before, after = map[string]string{}, map[string]string{}
	for _, e := range edits {
		if _, read := before[e.file]; !read {
			content, err := os.ReadFile(filepath.Join(s.dir, filepath.FromSlash(e.file)))
			if err != nil {
				return nil, nil, err
			}
			before[e.file], after[e.file] = string(content), string(content)
		}
		if e.old == e.new {
			return nil, nil, fmt.Errorf("%s: nothing is changed: %q", e.file, e.old)
		}
		if n := strings.Count(after[e.file], e.old); n != 1 {
			return nil, nil, fmt.Errorf("%s: what is to be replaced occurs %d times: %q", e.file, n, e.old)
		}
		after[e.file] = strings.Replace(after[e.file], e.old, e.new, 1)
	}
	return before, after, nil
}

func (s scratch) write(contents map[string]string) error {
	for file, content := range contents {
		// The file exists, and keeps its mode.
		if err := os.WriteFile(filepath.Join(s.dir, filepath.FromSlash(file)), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}
