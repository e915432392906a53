package main

import (
	"context"
	"fmt"

	"muster/cmd/muster/cli"
	"muster/cmd/muster/doctor"
	"muster/cmd/muster/node"
	"muster/raftstore"
)

// survey compares stopped nodes' folders.
func survey(folders []string) ([]cli.Survivor, error) {
	found, err := node.Survey(folders)
	list := make([]cli.Survivor, len(found))
	for i, s := range found {
		list[i] = cli.Survivor(s)
	}
	return list, err
}

func recoverFleet(ctx context.Context, o cli.RecoverOptions) (*cli.RenewReport, error) {
	r, err := node.Recover(ctx, node.RecoverOptions{Data: o.Data, From: o.From, WithoutLog: o.WithoutLog, By: o.By, Why: o.Why, Progress: o.Progress})
	return renewReport(o.Data, r, err)
}

func follow(data, by, why string) error { return node.Follow(data, by, why) }

func restoreFleet(ctx context.Context, o cli.RestoreOptions) (*cli.RenewReport, error) {
	r, err := node.Restore(ctx, node.RestoreOptions{Data: o.Data, Name: o.Name, Listen: o.Listen, Backup: o.Backup, By: o.By, Why: o.Why, Version: versionText(), Progress: o.Progress})
	return renewReport(o.Data, r, err)
}

func renewReport(data string, r *raftstore.Renewed, err error) (*cli.RenewReport, error) {
	if err != nil {
		return nil, err
	}
	return &cli.RenewReport{Data: data, Era: r.After.Era, Seq: r.After.Seq, Before: r.Before.Seq, Unsure: r.Unsure, Hash: fmt.Sprintf("%x@%d", r.After.Hash, r.After.Seq)}, nil
}

// lookAround is the doctor's round.
func lookAround(ctx context.Context, data string) []cli.Finding {
	var list []cli.Finding
	for _, f := range doctor.Diagnose(doctor.Look(ctx, data, versionText())) {
		list = append(list, cli.Finding(f))
	}
	return list
}
