#include "tests/standin/nvidia/p2p.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct transfer {
    bool sends;
    struct standin_connection connection;
    char *data;
    size_t bytes, done, chunk;
    bool ended;
};

static size_t chunk_size(uint8_t code)
{
    unsigned exponent = code >> 3, mantissa = code & 7;

    return exponent ? (size_t)(mantissa | 8) << (exponent - 1) : mantissa;
}

/* The part of a transfer that the channel makes: NCCL cuts it into parts of whole 4 KiB. Returns
 * false if there is none. */
static bool choose_part(const struct standin_block *block, const struct nccl_p2p *work,
                        unsigned parts, size_t bytes, size_t *begin, size_t *end)
{
    unsigned part = (unsigned)(block->channel - work->first_channel) & (work->channels - 1u);
    size_t size;

    if (part >= parts)
        return false;
    size = ((bytes + parts - 1) / parts + 4095) / 4096 * 4096;
    *begin = part * size < bytes ? part * size : bytes;
    *end = *begin + size < bytes ? *begin + size : bytes;
    return true;
}

static void copy_to_self(const struct standin_block *block, const struct nccl_p2p *work)
{
    size_t begin, end;

    if (choose_part(block, work, work->send_channels, work->send_bytes, &begin, &end) &&
        end > begin)
        memmove(standin_must_view(work->receive_at + begin, end - begin),
                standin_must_view(work->send_at + begin, end - begin), end - begin);
}

static bool start_transfer(const struct standin_block *block, const struct nccl_p2p *work,
                           bool sends, struct transfer *transfer)
{
    size_t begin, end;
    char *at = sends ? work->send_at : work->receive_at;

    if (!choose_part(block, work, sends ? work->send_channels : work->receive_channels,
                     sends ? work->send_bytes : work->receive_bytes, &begin, &end))
        return false;
    *transfer = (struct transfer){
        .sends = sends,
        .data = standin_must_view(at + begin, end - begin),
        .bytes = end - begin,
        .chunk = chunk_size(sends ? work->send_chunk : work->receive_chunk),
        .connection = sends ? standin_open_send(block, work->send_to, 1, 1)
                            : standin_open_receive(block, work->receive_from, 1, 1),
    };
    return true;
}

/* One step, if the other rank is ready for it. A transfer of no bytes has one step, too. */
static bool make_step(struct transfer *transfer)
{
    struct standin_connection *connection = &transfer->connection;
    size_t left = transfer->bytes - transfer->done;
    size_t bytes = left < transfer->chunk ? left : transfer->chunk;

    if (transfer->ended ||
        !(transfer->sends ? standin_can_send(connection, 1) : standin_can_receive(connection, 1)))
        return false;
    if (transfer->sends) {
        standin_set_size(connection, bytes);
        if (bytes > 0)
            memcpy(standin_slot(connection), transfer->data + transfer->done, bytes);
        standin_sent(connection, 1);
    } else {
        if (bytes > 0)
            memcpy(transfer->data + transfer->done, standin_slot(connection), bytes);
        standin_received(connection, 1);
    }
    transfer->done += bytes;
    transfer->ended = transfer->done == transfer->bytes;
    return true;
}

static void check_protocol(const struct nccl_p2p *work)
{
    if (!work->send_ll && !work->receive_ll)
        return;
    fprintf(stderr, "NCCL sends with another protocol than Simple\n");
    abort();
}

bool standin_run_p2p(const struct standin_block *block, const void *const works[], int count)
{
    struct transfer transfers[2 * NCCL_WORKS];
    int started = 0, ended = 0;
    unsigned naps = 0;

    for (int i = 0; i < count; i++) {
        const struct nccl_p2p *work = works[i];

        check_protocol(work);
        if (work->send_to == block->comm->rank) {
            copy_to_self(block, work);
            continue;
        }
        started += start_transfer(block, work, false, &transfers[started]);
        started += start_transfer(block, work, true, &transfers[started]);
    }
    while (ended < started && !*block->abort) {
        bool moved = false;

        for (int i = 0; i < started; i++)
            if (make_step(&transfers[i])) {
                moved = true;
                ended += transfers[i].ended;
            }
        if (moved)
            naps = 0;
        else
            standin_nap(&naps);
    }
    for (int i = 0; i < started; i++)
        standin_close(&transfers[i].connection);
    return ended == started;
}
