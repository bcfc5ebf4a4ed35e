// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"path"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user runs the program: a number, since Kubernetes believes in no name when it checks that a container is not root.
const user = "65532:65532"

// kind is one image: a program on an empty base.
type kind struct {
	title, description string
	// pkg is the program's package, a path from the repository's root; its last element is the program's name.
	pkg string
	// args follow the program in the entrypoint.
	args []string
}

var (
	manager = kind{
		title: "Reprise manager", description: "Scheduled, queued and interactive jobs on Kubernetes.", pkg: "./cmd/manager",
	}
	work = kind{
		title: "Reprise test work", description: "What the containers of end-to-end tests do.", pkg: "./test/e2e/work",
	}
	pause = kind{
		title: "Reprise test pause", description: "The sandbox of pods in end-to-end tests.", pkg: "./test/e2e/work",
		args: []string{"pause"},
	}
)

// path returns the program's place in the image.
func (k kind) path() string {
	return "/" + path.Base(k.pkg)
}

// image returns the image of a program that was built for the platform.
func (s settings) image(k kind, program string, platform v1.Platform) (v1.Image, error) {
	layer, err := layerOf(k.path(), program)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.ConfigFile(base, &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture, Variant: platform.Variant,
		Created: v1.Time{Time: s.created},
		RootFS:  v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:       user,
			WorkingDir: "/",
			Entrypoint: append([]string{k.path()}, k.args...),
			Labels:     s.labels(k),
		},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(img, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: s.created}, CreatedBy: "hack/image", Comment: k.path()},
	})
}

// labels returns what the OCI wants to know of an image. An absent label says more than an empty one.
func (s settings) labels(k kind) map[string]string {
	labels := map[string]string{
		"title": k.title, "description": k.description, "licenses": "Apache-2.0",
		"version": s.version, "revision": s.revision, "created": s.created.Format(time.RFC3339),
	}
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
	prefixed := map[string]string{}
	for name, value := range labels {
		prefixed["org.opencontainers.image."+name] = value
	}
	return prefixed
}
