#!/usr/bin/env python3
"""Trains a small network with PyTorch's DistributedDataParallel, and resumes after a failure.

    dtrun -np 4 -H host1:2,host2:2 --max-restarts 3 python3 ddp.py --checkpoint ddp.pt

Nothing here is specific to dtrun: rank, size and rendezvous come from the environment, as with
torchrun. All ranks must see the checkpoint file. Rank 0 writes it under another name first, so that
the previous checkpoint stays intact if rank 0 is killed while it writes.
"""
import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def batch_of(step, rank, size):
    """Depends only on step and rank, so that a resumed run sees the same data."""
    generator = torch.Generator().manual_seed(step * size + rank)
    x = torch.rand(64, 2, generator=generator) * 2 - 1
    return x, torch.sin(3 * x[:, :1]) * x[:, 1:]


def save(path, step, model, optimizer):
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)


def restore(path, model, optimizer):
    """Returns the number of steps done."""
    if not os.path.exists(path):
        return 0
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"]


def main():
    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--every", type=int, default=50, help="steps between two checkpoints")
    parser.add_argument("--checkpoint", default="ddp.pt")
    parser.add_argument("--backend", default="nccl" if gpu else "gloo",
                        help="gloo also serves ranks that share a GPU, which NCCL refuses")
    args = parser.parse_args()

    dist.init_process_group(args.backend, init_method="env://")
    rank, size = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda:0" if gpu else "cpu")  # dtrun shows each rank one GPU
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
    model = DistributedDataParallel(net.to(device), device_ids=[device] if gpu else None)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    done = restore(args.checkpoint, model, optimizer)
    if rank == 0 and done:
        print(f"continuing after step {done}")
    for step in range(done + 1, args.steps + 1):
        x, y = batch_of(step, rank, size)
        loss = torch.nn.functional.mse_loss(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % args.every == 0 or step == args.steps:
            mean = loss.detach() / size
            dist.all_reduce(mean)
            if rank == 0:
                save(args.checkpoint, step, model, optimizer)
                print(f"step {step:5d} of {args.steps}  loss {mean.item():.6f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
