// SPDX-License-Identifier: Apache-2.0

// Command crdtrim makes generated CRDs that embed a Job template small enough for plain `kubectl apply`, which keeps
// the whole object in an annotation of at most 262144 bytes. It rewrites the files it is given, deterministically;
// running it again changes nothing.
//
//	crdtrim -path work.job.template config/crd/bases/*.yaml
//
// Below every property that ends the path, and nowhere else, it removes
//   - descriptions: Kubernetes' own documentation of a pod, hundreds of kilobytes of it;
//   - validation rules: the Job's, such as the immutability of fields, would refuse edits of a template, which is no
//     Job yet; the API server applies them when the Job is created;
//   - alpha fields (alpha.go): a server with the gate off drops them from the Job without a word.
//
// There it also narrows what no client could read once it is stored (bounds.go), and adds the rules of ours (rules.go).
//
// The property itself keeps its description, which is ours, as everything above it is.
//
// It also generates the rules about changes of a spec (transitions.go). An API server evaluates all rules of a kind with every
// write of an object, and what that costs is most of what the write costs: config/crd has a test and a benchmark.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// maxBytes bounds a trimmed CRD as kubectl stores it, well below the 262144 bytes that all annotations together may have,
// so that a new release of Kubernetes is noticed here and not by a user.
const maxBytes = 230_000

func main() {
	path := flag.String("path", "", "property names, joined by dots, whose last one holds the embedded template")
	flag.Parse()
	if err := run(*path, flag.Args()); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "crdtrim:", err)
		os.Exit(1)
	}
}

func run(path string, files []string) error {
	if path == "" || len(files) == 0 {
		return errors.New("usage: crdtrim -path A.B.C FILE [FILE]")
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		trimmed, err := trimFile(data, strings.Split(path, "."))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(file, trimmed, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// trimFile returns the YAML of the CRD without what is in the way.
func trimFile(data []byte, path []string) ([]byte, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &crd); err != nil {
		return nil, err
	}
	for i := range crd.Spec.Versions {
		if schema := crd.Spec.Versions[i].Schema; schema != nil {
			err := errors.Join(confine(crd.Spec.Names.Kind, schema.OpenAPIV3Schema), trim(schema.OpenAPIV3Schema, path))
			if err != nil {
				return nil, err
			}
		}
	}
	return encode(&crd)
}

// encode writes the CRD as controller-gen does: without a status, and with the separator in front.
func encode(crd *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	typed, err := yaml.Marshal(crd)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := yaml.Unmarshal(typed, &object); err != nil {
		return nil, err
	}
	delete(object, "status")
	stored, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	if len(stored) > maxBytes {
		return nil, fmt.Errorf("the CRD has %d bytes, more than %d: plain kubectl apply would soon refuse it", len(stored), maxBytes)
	}
	out, err := yaml.Marshal(object)
	return append([]byte("---\n"), out...), err
}
