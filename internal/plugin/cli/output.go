// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"
)

// Output is the flag -o. A format that does not exist is refused before anything is done.
type Output struct {
	format string
	print  *genericclioptions.PrintFlags
}

// AddOutput adds the flag -o to a command. The operation is what the output says of an object that was changed, as in
// "jobrun.batch.reprise.dev/x created", empty if none is.
func AddOutput(cmd *cobra.Command, operation string) *Output {
	o := &Output{print: genericclioptions.NewPrintFlags(operation).WithTypeSetter(Scheme())}
	o.print.JSONYamlPrintFlags.AddFlags(cmd)
	cmd.Flag("show-managed-fields").Hidden = true
	cmd.Flags().VarP(o, "output", "o", "output format: table, wide, json, yaml, name, jsonpath=…, go-template=…")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "wide", "json", "yaml", "name"}, cobra.ShellCompDirectiveNoFileComp))
	return o
}

// String implements pflag.Value.
func (o *Output) String() string { return o.format }

// Type implements pflag.Value.
func (o *Output) Type() string { return "format" }

// Set implements pflag.Value.
func (o *Output) Set(format string) error {
	o.format = format
	if o.Human() {
		return nil
	}
	o.print.OutputFormat = &format
	if _, err := o.print.ToPrinter(); err != nil {
		return fmt.Errorf("there is no format %q: use table, wide, json, yaml, name, jsonpath=… or go-template=…", format)
	}
	return nil
}

// Human says whether the output is for a person: nothing else was asked for.
func (o *Output) Human() bool { return o.format == "" || o.format == "table" || o.format == "wide" }

// Wide says whether more columns were asked for.
func (o *Output) Wide() bool { return o.format == "wide" }

// Did changes what the output says was done to an object.
func (o *Output) Did(operation string) *Output {
	o.print.NamePrintFlags.Operation = operation
	return o
}

// Object writes an object of the API in the format that was asked for; for a person its name and what was done to it.
func (o *Output) Object(f *Factory, object runtime.Object) error {
	printer := o.print
	if o.Human() {
		human := ""
		printer.OutputFormat = &human
	}
	p, err := printer.ToPrinter()
	if err != nil {
		return err
	}
	return p.PrintObj(object, f.Out)
}

// Value writes what is no object of the API, as JSON or YAML by its json tags. Other formats are a misuse.
func (o *Output) Value(f *Factory, value any) error {
	switch o.format {
	case "json":
		encoder := json.NewEncoder(f.Out)
		encoder.SetIndent("", "    ")
		return encoder.Encode(value)
	case "yaml":
		text, err := yaml.Marshal(value)
		if err == nil {
			_, err = f.Out.Write(text)
		}
		return err
	default:
		return Usagef("this command prints table, wide, json or yaml, not %s", o.format)
	}
}
