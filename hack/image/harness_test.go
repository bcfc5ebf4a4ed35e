// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// repository is the root of this repository.
const repository = "../.."

// hello is quick to build, for any platform.
var hello = kind{title: "Hello", description: "Says hello.", pkg: "./hello"}

// settled returns the settings of a build in a directory of its own.
func settled(t *testing.T, root string) settings {
	t.Helper()
	return settings{
		root: root, out: filepath.Join(t.TempDir(), "images"),
		version: "v1.2.3", revision: "0123456789abcdef0123456789abcdef01234567", created: time.Unix(1700000000, 0).UTC(),
	}
}

// greeting is the release of hello.
func greeting(t *testing.T, s settings) (tag name.Tag, index v1.ImageIndex) {
	t.Helper()
	tag = must(tagged("example.com/team/hello", s.version))(t)
	if err := s.release(t.Context(), hello, platforms, tag); err != nil {
		t.Fatal(err)
	}
	whole := must(layout.ImageIndexFromPath(filepath.Join(s.out, "hello-oci")))(t)
	entries := must(whole.IndexManifest())(t).Manifests
	if len(entries) != 1 || entries[0].Annotations["org.opencontainers.image.ref.name"] != s.version {
		t.Fatalf("tools that copy a layout find the one image by its tag; this one holds %+v", entries)
	}
	return tag, must(whole.ImageIndex(entries[0].Digest))(t)
}

// file is one entry of an image's file system.
type file struct {
	name    string
	mode    int64
	owner   int
	content []byte
}

// files returns everything that is in an image.
func files(t *testing.T, img v1.Image) []file {
	t.Helper()
	content := mutate.Extract(img)
	t.Cleanup(func() { _ = content.Close() })
	var all []file
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, file{header.Name, header.Mode, header.Uid, must(io.ReadAll(reader))(t)})
	}
}

// program writes the one file of an image to a place where it can run.
func program(t *testing.T, img v1.Image) string {
	t.Helper()
	place := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(place, files(t, img)[0].content, 0o700); err != nil {
		t.Fatal(err)
	}
	return place
}

// must returns a value, or ends the test.
func must[V any](value V, err error) func(*testing.T) V {
	return func(t *testing.T) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
