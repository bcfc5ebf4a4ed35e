// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long a completion may take.
const patience = 5 * time.Second

// Kind is what a command takes the name of.
type Kind struct {
	// Prefix is written before the name, as in "sj/"; empty for the kind that goes without.
	Prefix string
	// List is an empty list of the kind.
	List client.ObjectList
	// Keep says which objects are offered. Nil: all.
	Keep func(client.Object) bool
}

// Complete offers the names of objects for the first most arguments of a command, 0 for any number.
func (f *Factory) Complete(most int, kinds ...Kind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), patience)
		defer cancel()
		var offered []string
		for _, kind := range kinds {
			offered = append(offered, f.offers(ctx, kind, args, begun)...)
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
}

// offers is silent about errors: there is nowhere to tell them.
func (f *Factory) offers(ctx context.Context, kind Kind, args []string, begun string) []string {
	c, namespace, err := f.Connect()
	if err != nil {
		return nil
	}
	list, err := fresh(kind.List)
	if err != nil || c.List(ctx, list, client.InNamespace(namespace), client.Limit(searched)) != nil {
		return nil
	}
	var names []string
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(client.Object)
		if !ok {
			return nil
		}
		name := kind.Prefix + object.GetName()
		if strings.HasPrefix(name, begun) && !slices.Contains(args, name) && (kind.Keep == nil || kind.Keep(object)) {
			names = append(names, name)
		}
		return nil
	})
	return names
}

// AddFlags adds the flags of kubectl to the root of all commands. Those that few need are not shown.
func (f *Factory) AddFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	f.Flags.AddFlags(flags)
	shown := []string{"namespace", "context", "kubeconfig", "request-timeout"}
	flags.VisitAll(func(flag *pflag.Flag) { flag.Hidden = !slices.Contains(shown, flag.Name) })
	_ = root.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return f.contextNames(), cobra.ShellCompDirectiveNoFileComp
	})
	_ = root.RegisterFlagCompletionFunc("namespace", f.Complete(0, Kind{List: &corev1.NamespaceList{}}))
}
