// SPDX-License-Identifier: Apache-2.0

// Command image builds the container images of this repository without a container engine, on an empty base. What it
// writes depends on the commit and the Go release alone: two builds of one commit have one digest.
//
//	image [flags] local     tarballs for this machine's platform: the manager, and the images of the end-to-end tests
//	image [flags] release   the manager for all platforms, as an OCI image layout
//
// Both write the manager's bills of materials beside its images.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	s := settings{}
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.StringVar(&s.root, "root", ".", "Root of the repository.")
	flags.StringVar(&s.out, "out", "bin/images", "Directory to write to.")
	flags.StringVar(&s.version, "version", "unknown", "Version to stamp.")
	flags.StringVar(&s.revision, "revision", "", "Revision that is built.")
	image := flags.String("image", "reprise/manager", "Name of the manager's image (without a tag, the version is its tag).")
	also := flags.String("also", "", "More tags for the manager's tarball, separated by commas.")
	flags.Func("created", "When the revision was made, in seconds since 1970 (default 0).", func(text string) error {
		seconds, err := strconv.ParseInt(text, 10, 64)
		s.created = time.Unix(seconds, 0).UTC()
		return err
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("say what to build: local or release")
	}
	tag, err := tagged(*image, s.version)
	if err != nil {
		return err
	}
	switch what := flags.Arg(0); what {
	case "local":
		return s.local(ctx, v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, tag, strings.Split(*also, ","))
	case "release":
		return s.release(ctx, manager, platforms, tag)
	default:
		return fmt.Errorf("%q is neither local nor release", what)
	}
}

// tagged returns the name of an image, with its own tag or this one.
func tagged(image, tag string) (name.Tag, error) {
	if !strings.Contains(path.Base(image), ":") { // a colon further ahead is that of a port
		image += ":" + tag
	}
	return name.NewTag(image)
}

// settings is what all images of one build have in common.
type settings struct {
	// root is the repository's, out the directory to write to.
	root, out         string
	version, revision string
	created           time.Time
}
