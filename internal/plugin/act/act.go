// SPDX-License-Identifier: Apache-2.0

// Package act holds the commands that ask for something: to run, to retry, to cancel, to suspend and resume, to send again.
package act

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/cli"
)

// Commands returns the commands of this package.
func Commands(f *cli.Factory) []*cobra.Command {
	return []*cobra.Command{
		runCommand(f), retryCommand(f), cancelCommand(f), suspendCommand(f), resumeCommand(f), resendCommand(f), confirmCommand(f),
	}
}

// owner is who the API server records as the author of what is written here.
const owner = client.FieldOwner("kubectl-reprise")

// change applies a merge patch to the object that was read, and to no other that may have got its name meanwhile.
func change(ctx context.Context, c client.Client, object client.Object, metadata, spec map[string]any) error {
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["uid"] = object.GetUID()
	patch := map[string]any{"metadata": metadata}
	if spec != nil {
		patch["spec"] = spec
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	name := object.GetName()
	err = c.Patch(ctx, object, client.RawPatch("application/merge-patch+json", text), owner)
	switch {
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s was replaced by another of its name just now; nothing was changed", name)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s was deleted just now", name)
	default:
		return err
	}
}

// each does something for every argument. What fails is told at once, and does not keep the others from it.
func each(ctx context.Context, f *cli.Factory, args []string, do func(arg string) error) error {
	var failed error
	for _, arg := range args {
		err := do(arg)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			f.Tell(err)
			failed = &cli.ExitError{Code: cli.ExitFailed}
		}
	}
	return failed
}

// unfinished says whether a run or a group has not ended.
func unfinished(object client.Object) bool {
	switch o := object.(type) {
	case *batchv1alpha1.JobRun:
		return !o.Status.Phase.Terminal()
	case *batchv1alpha1.JobGroup:
		return !o.Status.Phase.Terminal()
	default:
		return true
	}
}
