// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxFile is how long a file may be, in bytes.
const maxFile = 16 << 20

// ReadFile reads the objects of a YAML or JSON file, "-" for the standard input. A field that does not exist is an error, and so is a
// kind that the plugin does not know.
func (f *Factory) ReadFile(ctx context.Context, path string) ([]client.Object, error) {
	text, err := f.read(ctx, path)
	if err != nil {
		return nil, err
	}
	decoder := serializer.NewCodecFactory(Scheme(), serializer.EnableStrict).UniversalDeserializer()
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var objects []client.Object
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		object, err := decode(decoder, document)
		if err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", path, n, err)
		}
		if object != nil {
			objects = append(objects, object)
		}
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("%s holds no object", path)
	}
	return objects, nil
}

// decode returns nil for a document that holds nothing.
func decode(decoder runtime.Decoder, document []byte) (client.Object, error) {
	text, err := utilyaml.ToJSON(document)
	if err != nil || string(bytes.TrimSpace(text)) == "null" {
		return nil, err
	}
	decoded, kind, err := decoder.Decode(text, nil, nil)
	if runtime.IsNotRegisteredError(err) && kind != nil {
		return nil, fmt.Errorf("kubectl reprise does nothing with a %s of %s", kind.Kind, kind.GroupVersion())
	}
	if err != nil {
		return nil, err
	}
	object, ok := decoded.(client.Object)
	if !ok {
		return nil, fmt.Errorf("a %s is no single object; write its items one by one", kind.Kind)
	}
	return object, nil
}

// Place puts an object of a file into the namespace to work in. One that names another namespace than the flag --namespace is an
// error.
func (f *Factory) Place(object client.Object) error {
	namespace, demanded, err := f.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	switch object.GetNamespace() {
	case "":
		object.SetNamespace(namespace)
	case namespace:
	default:
		if demanded {
			return fmt.Errorf("%s belongs to namespace %q, and --namespace says %q", object.GetName(), object.GetNamespace(), namespace)
		}
	}
	return nil
}

// read gives up when the context ends: the standard input may be a person who never types anything.
func (f *Factory) read(ctx context.Context, path string) ([]byte, error) {
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		return bounded(path, file)
	}
	type result struct {
		text []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		text, err := bounded("the standard input", f.In)
		read <- result{text, err}
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case r := <-read:
		return r.text, r.err
	}
}

func bounded(what string, from io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s is longer than %d MiB", what, maxFile>>20)
	}
	return text, err
}
