// SPDX-License-Identifier: Apache-2.0

// Package cli is what the commands of kubectl reprise have in common: the connection to the cluster, errors that say what to do,
// exit codes, signals, and output.
package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/term"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Factory gives a command what it needs.
type Factory struct {
	genericiooptions.IOStreams
	// Flags are those of kubectl: --context, --namespace, --kubeconfig and the like.
	Flags *genericclioptions.ConfigFlags
	// Clock is the time.
	Clock clock.WithTicker
	// Terminal says whether Out is one: only then is anything coloured or drawn over.
	Terminal bool
	// Colour says whether what is written to Out is coloured.
	Colour bool

	signals signals
}

// NewFactory returns what the commands of a process need, before its flags are known.
func NewFactory(streams genericiooptions.IOStreams) *Factory {
	f := &Factory{IOStreams: streams, Flags: genericclioptions.NewConfigFlags(true), Clock: clock.RealClock{}}
	f.Flags.WrapConfigFn = unhurried
	if out, ok := streams.Out.(*os.File); ok {
		f.Terminal = term.IsTerminal(int(out.Fd())) && os.Getenv("TERM") != "dumb"
	}
	f.Colour = f.Terminal && os.Getenv("NO_COLOR") == "" //nolint:misspell // so it is called: https://no-color.org
	return f
}

// unhurried lifts the limit that a client puts on itself: a person waits, and a command makes few requests.
func unhurried(config *rest.Config) *rest.Config {
	config.QPS, config.Burst = 50, 300
	return config
}

// Scheme returns the kinds that the plugin reads and writes.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		batchv1alpha1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(fmt.Sprintf("a kind is registered twice: %v", err)) // a mistake in the program
		}
	}
	return scheme
}

// mapper tells the resources of the kinds without asking the API server, which takes time and cannot be interrupted.
func mapper(scheme *runtime.Scheme) meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		scope := meta.RESTScopeNamespace
		if kind.Group == "" && (kind.Kind == "Node" || kind.Kind == "Namespace" || kind.Kind == "PersistentVolume") {
			scope = meta.RESTScopeRoot
		}
		m.Add(kind, scope)
	}
	return m
}

// Client returns a client of the cluster. Nothing is cached.
func (f *Factory) Client() (client.WithWatch, error) {
	config, err := f.Flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	scheme := Scheme()
	return client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper(scheme), HTTPClient: http})
}

// Clientset returns a client for what the other one cannot do, such as logs.
func (f *Factory) Clientset() (kubernetes.Interface, error) {
	config, err := f.Flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// Namespace returns the namespace to work in.
func (f *Factory) Namespace() (string, error) {
	namespace, _, err := f.Flags.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// Connect returns a client and the namespace to work in: what nearly every command begins with.
func (f *Factory) Connect() (client.WithWatch, string, error) {
	namespace, err := f.Namespace()
	if err != nil {
		return nil, "", err
	}
	c, err := f.Client()
	return c, namespace, err
}

// Get reads an object by name. Of one that does not exist the error names those that are called alike.
func Get[T client.Object](ctx context.Context, c client.Reader, namespace, name string, into T) error {
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	return suggesting(ctx, c, err, namespace, name, into)
}

// Now is the present, in the zone of the machine.
func (f *Factory) Now() time.Time { return f.Clock.Now() }

// Printf writes to Out.
func (f *Factory) Printf(format string, args ...any) { _, _ = fmt.Fprintf(f.Out, format, args...) }

// Notef writes to ErrOut what is said beside the output: progress, and what a person should know. Begin it in lower case and end
// it with a newline.
func (f *Factory) Notef(format string, args ...any) { _, _ = fmt.Fprintf(f.ErrOut, format, args...) }
