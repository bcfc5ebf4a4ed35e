// SPDX-License-Identifier: Apache-2.0

// Package guard runs a command so that it and everything it has started end with whoever runs it, however that ends.
//
// Three processes stand in a row: the holder, which keeps the slot; the guard, which is the same program once more; and the command.
// Holder and guard are joined by two pipes. What ends one of them is seen at once by the others:
//
//   - The holder is killed: the guard reads the end of its pipe, ends the command, and gives the slot back in the holder's place.
//   - The guard is killed: on Linux the kernel kills the command; the holder reads the end of its pipe and kills what else is left.
//   - The holder stands still and renews nothing: the guard ends the command when the time is up that it was told last.
//   - The guard stands still: the holder kills the command itself when that time is up.
//
// The guard and the command are in process groups of their own, so that a signal to the job of a shell ends the holder alone, in
// order. On Linux guard and holder adopt every descendant whose parent has ended, so that none escapes by becoming a daemon. On other
// Unix systems what leaves the command's process group escapes. On Windows there is no guard, and the command and its descendants
// are in a job that the system ends together with the holder.
package guard
