#!/usr/bin/python3
"""Gloo's all-reduce, through PyTorch, measured as allreduce_loop.c measures the others.

    allreduce_gloo.py MINBYTES MAXBYTES FACTOR SECONDS
"""
import sys
import time

import torch
import torch.distributed as dist


def repeat(tensor, times):
    dist.barrier()
    start = time.perf_counter()
    for _ in range(times):
        dist.all_reduce(tensor)
    return (time.perf_counter() - start) / times


def agreed(value, op):
    tensor = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(tensor, op=op)
    return tensor.item()


def warm_up(seconds):
    tensor = torch.zeros(1)
    ran = 0
    while ran < seconds:
        ran += agreed(repeat(tensor, 100), dist.ReduceOp.MAX) * 100


def main():
    least, most, factor, seconds = (float(word) for word in sys.argv[1:5])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="env://")
    warm_up(2 * seconds)
    size = int(least)
    while size <= most:
        tensor = torch.zeros(size // 4)
        took = min(agreed(repeat(tensor, 4), dist.ReduceOp.MAX) for _ in range(3))
        times = min(1000000, max(8, int(seconds / took)))
        mean = agreed(repeat(tensor, times), dist.ReduceOp.SUM) / dist.get_world_size()
        if dist.get_rank() == 0:
            print(f"{size} {mean * 1e6:.3f}", flush=True)
        size = int(size * factor)


main()
