// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layerOf returns a layer with the program alone. It belongs to root: the user of the image may run it, but not change it.
func layerOf(place, program string) (v1.Layer, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	if err := add(archive, strings.TrimPrefix(place, "/"), content, 0o555); err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// add adds a file to an archive. Its time is always the same, so that an unchanged file leaves an unchanged archive.
func add(archive *tar.Writer, file string, content []byte, mode int64) error {
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: file, Mode: mode, Size: int64(len(content)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR,
	}
	if err := archive.WriteHeader(header); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if _, err := archive.Write(content); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
