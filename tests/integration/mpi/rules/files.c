/* M13: files whose ranks are on several nodes: every family of procedures, and what each rank then finds in the
 * file. Sealed, each rank has the file open by itself, and the shared pointer is MPIsec's. */
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"
#include "rules.h"

#if defined(OPEN_MPI)
enum { OPENMPI = 1 };
#else
enum { OPENMPI = 0 };
#endif
enum { CELLS = 512, RECORD = 40 };
static char path[4096];

static int stamp(int owner, int index) {
    return owner * 100003 + index;
}

/* The same name on every rank, of a file that is not there yet. */
static void new_name(void) {
    static int made;
    const char* directory = getenv("TMPDIR");
    if (rank == 0)
        snprintf(path, sizeof path, "%s/mpisec-files-%ld-%d", directory ? directory : "/tmp", (long)getpid(),
                 ++made);
    OK(MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD));
}

static MPI_File open_new(MPI_Comm comm, int more) {
    MPI_File file;
    new_name();
    OK(MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE | more,
                     MPI_INFO_NULL, &file));
    return file;
}

/* What was written is there for everyone (MPI standard section 14.6.1). */
static void settle(MPI_File file) {
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_sync(file));
}

static void check_ints(const int* got, int owner, int first, int count, const char* what) {
    for (int i = 0; i < count; ++i)
        CHECK(got[i] == stamp(owner, first + i), "%s: %d instead of %d at %d", what, got[i],
              stamp(owner, first + i), i);
}

static void fill_ints(int* cells, int owner, int first, int count) {
    for (int i = 0; i < count; ++i) cells[i] = stamp(owner, first + i);
}

static int received(const MPI_Status* status) {
    int count;
    OK(MPI_Get_count(status, MPI_INT, &count));
    return count;
}

/* Everyone writes a block in each of the ways to say where, and reads its neighbour's. */
static void at_offsets(void) {
    MPI_File file = open_new(MPI_COMM_WORLD, MPI_MODE_RDWR);
    const int right = (rank + 1) % size;
    const MPI_Offset block = CELLS * sizeof(int), mine = rank * block, theirs = right * block,
                     all = size * block;
    int out[CELLS], in[CELLS];
    MPI_Request request;
    MPI_Status status;
    for (int how = 0; how < 4; ++how) {
        const MPI_Offset base = how * all;
        fill_ints(out, rank, how, CELLS);
        memset(&status, 0, sizeof status);
        if (how == 0) OK(MPI_File_write_at(file, base + mine, out, CELLS, MPI_INT, &status));
        if (how == 1) OK(MPI_File_write_at_all(file, base + mine, out, CELLS, MPI_INT, &status));
        if (how == 2) OK(MPI_File_iwrite_at(file, base + mine, out, CELLS, MPI_INT, &request));
        if (how == 3) OK(MPI_File_iwrite_at_all(file, base + mine, out, CELLS, MPI_INT, &request));
        if (how >= 2) OK(MPI_Wait(&request, &status));
        CHECK(received(&status) == CELLS, "%d cells were written", received(&status));
        settle(file);
        memset(in, 0, sizeof in);
        if (how == 0) OK(MPI_File_read_at(file, base + theirs, in, CELLS, MPI_INT, &status));
        if (how == 1) OK(MPI_File_read_at_all(file, base + theirs, in, CELLS, MPI_INT, &status));
        if (how == 2) OK(MPI_File_iread_at(file, base + theirs, in, CELLS, MPI_INT, &request));
        if (how == 3) OK(MPI_File_iread_at_all(file, base + theirs, in, CELLS, MPI_INT, &request));
        if (how >= 2) OK(MPI_Wait(&request, &status));
        CHECK(received(&status) == CELLS, "%d cells were read", received(&status));
        check_ints(in, right, how, CELLS, "a block at an offset");
    }
    OK(MPI_File_write_at_all_begin(file, mine, out, CELLS, MPI_INT));
    OK(MPI_File_write_at_all_end(file, out, &status));
    settle(file);
    OK(MPI_File_read_at_all_begin(file, theirs, in, CELLS, MPI_INT));
    OK(MPI_File_read_at_all_end(file, in, &status));
    check_ints(in, right, 3, CELLS, "a block in two calls");
    OK(MPI_File_close(&file));
}

/* Rank r's view: every size-th group of three cells, beginning with group r. */
static MPI_Datatype interleaved(int ranks) {
    MPI_Datatype group, spread;
    OK(MPI_Type_contiguous(3, MPI_INT, &group));
    OK(MPI_Type_create_resized(group, 0, 3 * (MPI_Aint)sizeof(int) * ranks, &spread));
    OK(MPI_Type_commit(&spread));
    OK(MPI_Type_free(&group));
    return spread;
}

static void check_interleaved(MPI_File file, int ranks, int first, const char* what) {
    int cells[12], expected;
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int i = 0; i + 12 <= ranks * (CELLS / 3 * 3); i += 12) {
        OK(MPI_File_read_at(file, i, cells, 12, MPI_INT, MPI_STATUS_IGNORE));
        for (int j = 0; j < 12; ++j) {
            const int group = (i + j) / 3, place = group / ranks * 3 + (i + j) % 3;
            expected = stamp(group % ranks, first + place);
            CHECK(cells[j] == expected, "%s: cell %d is %d instead of %d", what, i + j, cells[j], expected);
        }
    }
}

static void with_views(MPI_Comm comm) {
    int here, ranks, out[CELLS], in[CELLS];
    const int cells = CELLS / 3 * 3;
    MPI_Request request;
    OK(MPI_Comm_rank(comm, &here));
    OK(MPI_Comm_size(comm, &ranks));
    MPI_File file = open_new(comm, MPI_MODE_RDWR);
    MPI_Datatype mine = interleaved(ranks);
    for (int how = 0; how < 4; ++how) {
        fill_ints(out, here, how, cells);
        OK(MPI_File_set_view(file, here * 3 * (MPI_Offset)sizeof(int), MPI_INT, mine, "native",
                             MPI_INFO_NULL));
        if (how == 0) OK(MPI_File_write(file, out, cells, MPI_INT, MPI_STATUS_IGNORE));
        if (how == 1) OK(MPI_File_write_all(file, out, cells, MPI_INT, MPI_STATUS_IGNORE));
        if (how == 2) OK(MPI_File_iwrite(file, out, cells, MPI_INT, &request));
        if (how == 3) OK(MPI_File_iwrite_all(file, out, cells, MPI_INT, &request));
        if (how >= 2) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(MPI_File_sync(file));
        OK(MPI_Barrier(comm));
        OK(MPI_File_sync(file));
        OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
        memset(in, 0, sizeof in);
        if (how == 0) OK(MPI_File_read(file, in, cells, MPI_INT, MPI_STATUS_IGNORE));
        if (how == 1) OK(MPI_File_read_all(file, in, cells, MPI_INT, MPI_STATUS_IGNORE));
        if (how == 2) OK(MPI_File_iread(file, in, cells, MPI_INT, &request));
        if (how == 3) OK(MPI_File_iread_all(file, in, cells, MPI_INT, &request));
        if (how >= 2) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        check_ints(in, here, how, cells, "a view");
        check_interleaved(file, ranks, how, "views that interleave");
        OK(MPI_Barrier(comm));
    }
    OK(MPI_File_set_view(file, here * 3 * (MPI_Offset)sizeof(int), MPI_INT, mine, "native", MPI_INFO_NULL));
    fill_ints(out, here, 9, cells);
    OK(MPI_File_write_all_begin(file, out, cells, MPI_INT));
    OK(MPI_File_write_all_end(file, out, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(file));
    OK(MPI_Barrier(comm));
    OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_all_begin(file, in, cells, MPI_INT));
    OK(MPI_File_read_all_end(file, in, MPI_STATUS_IGNORE));
    check_ints(in, here, 9, cells, "a view in two calls");
    check_interleaved(file, ranks, 9, "views that interleave, in two calls");
    OK(MPI_Type_free(&mine));
    OK(MPI_File_close(&file));
}

/* Memory with gaps, of which the file has none, and the other way round. */
static void with_gaps_in_memory(void) {
    MPI_File file = open_new(MPI_COMM_WORLD, MPI_MODE_RDWR);
    MPI_Datatype every_second;
    int out[2 * CELLS], in[2 * CELLS], right = (rank + 1) % size;
    OK(MPI_Type_vector(CELLS, 1, 2, MPI_INT, &every_second));
    OK(MPI_Type_commit(&every_second));
    fill_ints(out, rank, 0, 2 * CELLS);
    memset(in, 0, sizeof in);
    OK(MPI_File_write_at_all(file, rank * (MPI_Offset)(CELLS * sizeof(int)), out, 1, every_second,
                             MPI_STATUS_IGNORE));
    settle(file);
    OK(MPI_File_read_at_all(file, right * (MPI_Offset)(CELLS * sizeof(int)), in, 1, every_second,
                            MPI_STATUS_IGNORE));
    for (int i = 0; i < 2 * CELLS - 1; ++i)
        CHECK(in[i] == (i % 2 ? 0 : stamp(right, i)), "cell %d is %d", i, in[i]);
    OK(MPI_Type_free(&every_second));
    OK(MPI_File_close(&file));
}

static void individual_pointers(void) {
    MPI_File file = open_new(MPI_COMM_WORLD, MPI_MODE_RDWR);
    int out[4], in[4];
    MPI_Offset place, bytes;
    OK(MPI_File_set_view(file, rank * 64, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    fill_ints(out, rank, 0, 4);
    OK(MPI_File_write(file, out, 2, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_get_position(file, &place));
    CHECK(place == 2, "the pointer is at %lld", (long long)place);
    OK(MPI_File_get_byte_offset(file, place, &bytes));
    CHECK(bytes == rank * 64 + 8, "that is byte %lld", (long long)bytes);
    OK(MPI_File_write(file, out + 2, 2, MPI_INT, MPI_STATUS_IGNORE));
    settle(file);
    OK(MPI_File_seek(file, -3, MPI_SEEK_CUR));
    OK(MPI_File_read(file, in, 3, MPI_INT, MPI_STATUS_IGNORE));
    check_ints(in, rank, 1, 3, "behind a seek");
    OK(MPI_File_close(&file));
}

/* Everyone appends records in no order: each is there once and whole, and each is read once. */
static void shared_pointer(void) {
    enum { TURNS = 12 };
    MPI_File file = open_new(MPI_COMM_WORLD, MPI_MODE_RDWR);
    int record[RECORD], *seen = memory((size_t)(size * TURNS) * sizeof *seen), *sums;
    MPI_Offset place;
    MPI_Status status;
    MPI_Request request;
    memset(seen, 0, (size_t)(size * TURNS) * sizeof *seen);
    sums = memory((size_t)(size * TURNS) * sizeof *sums);
    OK(MPI_File_set_view(file, 128, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int turn = 0; turn < TURNS; ++turn) {
        for (int i = 0; i < RECORD; ++i) record[i] = rank * TURNS + turn;
        if (turn % 2) {
            OK(MPI_File_iwrite_shared(file, record, RECORD, MPI_INT, &request));
            OK(MPI_Wait(&request, &status));
        } else {
            OK(MPI_File_write_shared(file, record, RECORD, MPI_INT, &status));
        }
        CHECK(received(&status) == RECORD, "%d cells were written", received(&status));
    }
    settle(file);
    OK(MPI_File_get_position_shared(file, &place));
    CHECK(place == size * TURNS * RECORD, "the shared pointer is at %lld", (long long)place);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    for (int turn = 0; turn < TURNS; ++turn) {
        if (turn % 2) {
            OK(MPI_File_iread_shared(file, record, RECORD, MPI_INT, &request));
            OK(MPI_Wait(&request, &status));
        } else {
            OK(MPI_File_read_shared(file, record, RECORD, MPI_INT, &status));
        }
        CHECK(received(&status) == RECORD, "%d cells were read", received(&status));
        for (int i = 0; i < RECORD; ++i)
            CHECK(record[i] == record[0], "a record holds %d and %d", record[0], record[i]);
        CHECK(record[0] >= 0 && record[0] < size * TURNS, "a record holds %d", record[0]);
        ++seen[record[0]];
    }
    OK(MPI_Allreduce(seen, sums, size * TURNS, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < size * TURNS; ++i) CHECK(sums[i] == 1, "record %d was read %d times", i, sums[i]);
    OK(MPI_File_close(&file));
    free(seen);
    free(sums);
}

static void moved_shared_pointer(void) {
    MPI_File file = open_new(MPI_COMM_WORLD, MPI_MODE_RDWR);
    MPI_Offset place;
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_set_size(file, 4000));
    OK(MPI_File_seek_shared(file, 17, MPI_SEEK_SET));
    OK(MPI_File_seek_shared(file, 3, MPI_SEEK_CUR));
    OK(MPI_File_get_position_shared(file, &place));
    CHECK(place == 20, "the shared pointer is at %lld instead of 20", (long long)place);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_seek_shared(file, -100, MPI_SEEK_END));
    OK(MPI_File_get_position_shared(file, &place));
    CHECK(place == 900, "the shared pointer is at %lld instead of 900", (long long)place);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_set_view(file, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_get_position_shared(file, &place));
    CHECK(place == 0, "the shared pointer of a new view is at %lld", (long long)place);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_close(&file));
}

/* Rank r's part comes behind those of all lower ranks, however long these are. */
static void in_order(void) {
    MPI_File file = open_new(MPI_COMM_WORLD, MPI_MODE_RDWR);
    int *out = memory((size_t)(10 * size + 10) * sizeof *out),
        *in = memory((size_t)(10 * size + 10) * sizeof *in);
    const int mine = rank % 3 == 1 ? 0 : 7 * rank + 5;
    MPI_Status status;
    MPI_Offset place, total = 0, before = 0;
    for (int i = 0; i < size; ++i) {
        total += i % 3 == 1 ? 0 : 7 * i + 5;
        if (i < rank) before += i % 3 == 1 ? 0 : 7 * i + 5;
    }
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int turn = 0; turn < 2; ++turn) {
        fill_ints(out, rank, turn, mine);
        if (turn == 0) {
            OK(MPI_File_write_ordered(file, out, mine, MPI_INT, &status));
        } else {
            OK(MPI_File_write_ordered_begin(file, out, mine, MPI_INT));
            OK(MPI_File_write_ordered_end(file, out, &status));
        }
        CHECK(received(&status) == mine, "%d of %d cells were written", received(&status), mine);
    }
    settle(file);
    OK(MPI_File_get_position_shared(file, &place));
    CHECK(place == 2 * total, "the shared pointer is at %lld", (long long)place);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int turn = 0; turn < 2; ++turn) {
        OK(MPI_File_read_at(file, turn * total + before, in, mine, MPI_INT, MPI_STATUS_IGNORE));
        check_ints(in, rank, turn, mine, "a part in the order of ranks");
    }
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    for (int turn = 0; turn < 2; ++turn) {
        memset(in, 0, (size_t)mine * sizeof *in);
        if (turn == 0) {
            OK(MPI_File_read_ordered(file, in, mine, MPI_INT, &status));
        } else {
            OK(MPI_File_read_ordered_begin(file, in, mine, MPI_INT));
            OK(MPI_File_read_ordered_end(file, in, &status));
        }
        check_ints(in, rank, turn, mine, "a part read in the order of ranks");
    }
    OK(MPI_File_close(&file));
    free(out);
    free(in);
}

static void sizes_of_files(void) {
    MPI_File file = open_new(MPI_COMM_WORLD, MPI_MODE_RDWR);
    MPI_Offset bytes;
    OK(MPI_File_set_size(file, 12345));
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == 12345, "the file has %lld bytes", (long long)bytes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (OPENMPI &&
        !sealed) { /* Open MPI 5 copies what there is behind itself, and cannot shrink that again */
        OK(MPI_File_close(&file));
        return;
    }
    OK(MPI_File_preallocate(file, 20000));
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == 20000, "the file has %lld bytes", (long long)bytes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_set_size(file, 10));
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == 10, "the file has %lld bytes", (long long)bytes);
    OK(MPI_File_close(&file));
}

/* What the program asks of a file is what it opened it with. */
static void asked(void) {
    MPI_File file = open_new(MPI_COMM_WORLD, MPI_MODE_RDWR);
    const int meant = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE;
    int amode, result, flag;
    char datarep[MPI_MAX_DATAREP_STRING];
    MPI_Group group, all;
    MPI_Offset disp;
    MPI_Datatype etype, filetype;
    MPI_Aint extent;
    MPI_Info info;
    OK(MPI_File_get_amode(file, &amode));
    CHECK(amode == meant, "the mode is %d instead of %d", amode, meant);
    OK(MPI_File_get_group(file, &group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_compare(group, all, &result));
    CHECK(result == MPI_IDENT, "the group is another");
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&all));
    OK(MPI_File_set_view(file, 24, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_get_view(file, &disp, &etype, &filetype, datarep));
    CHECK(disp == 24 && strcmp(datarep, "native") == 0, "the view begins at %lld", (long long)disp);
    OK(MPI_File_get_type_extent(file, MPI_INT, &extent));
    CHECK(extent == sizeof(int), "the extent is %ld", (long)extent);
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_get_atomicity(file, &flag));
    CHECK(flag == 1, "atomicity is %d", flag);
    OK(MPI_File_set_atomicity(file, 0));
    OK(MPI_File_get_atomicity(file, &flag));
    CHECK(flag == 0, "atomicity is %d", flag);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "cb_buffer_size", "1048576"));
    OK(MPI_File_set_info(file, info));
    OK(MPI_Info_free(&info));
    OK(MPI_File_get_info(file, &info));
    char value[MPI_MAX_INFO_VAL + 1];
    OK(MPI_Info_get(info, "romio_ds_write", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(!flag || strcmp(value, "disable") != 0, "there is a hint that nobody gave");
    OK(MPI_Info_set(info, "romio_ds_write", "disable"));
    OK(MPI_File_set_info(file, info));
    OK(MPI_Info_free(&info));
    OK(MPI_File_close(&file));
    /* A hint that the program gives is shown, where the library shows such hints: Open MPI 5 does not, plain. */
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "romio_ds_write", "disable"));
    new_name();
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info,
                     &file));
    OK(MPI_Info_free(&info));
    OK(MPI_File_get_info(file, &info));
    OK(MPI_Info_get(info, "romio_ds_write", MPI_MAX_INFO_VAL, value, &flag));
    CHECK(!flag || strcmp(value, "disable") == 0, "the program's hint is %s", value);
    OK(MPI_Info_free(&info));
    OK(MPI_File_close(&file));
}

/* All ranks open a file whose aggregators are on some nodes only, and ROMIO's hints say how many there are. */
static void aggregators(void) {
    char first[MPI_MAX_PROCESSOR_NAME] = "", value[MPI_MAX_INFO_VAL + 1];
    int length, is_romio;
    OK(MPI_Get_processor_name(first, &length));
    OK(MPI_Bcast(first, MPI_MAX_PROCESSOR_NAME, MPI_CHAR, 0, MPI_COMM_WORLD));
    const char* same_node =
        getenv("MPISEC_SAME_NODE"); /* where ranks of a node are sealed apart, each has a node of its own */
    const int counted = !(sealed && same_node && strcmp(same_node, "seal") == 0);
    const char* lists[] = {"*:1", "*:*", first};
    const int numbers[] = {nodes, size, 1};
    for (int i = 0; i < 3; ++i) {
        MPI_Info info;
        MPI_File file;
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "cb_config_list", lists[i]));
        new_name();
        OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                         info, &file));
        OK(MPI_Info_free(&info));
        OK(MPI_File_get_info(file, &info));
        OK(MPI_Info_get(info, "romio_ds_read", MPI_MAX_INFO_VAL, value, &is_romio));
        if (is_romio) {
            OK(MPI_Info_get(info, "cb_config_list", MPI_MAX_INFO_VAL, value, &length));
            CHECK(length && strcmp(value, lists[i]) == 0, "the list is not %s", lists[i]);
            OK(MPI_Info_get(info, "cb_nodes", MPI_MAX_INFO_VAL, value, &length));
            CHECK(!counted || (length && atoi(value) == numbers[i]), "with %s there are not %d aggregators",
                  lists[i], numbers[i]);
        }
        OK(MPI_Info_free(&info));
        OK(MPI_File_close(&file));
    }
}

/* All ranks hear of what one of them, or all, cannot do. */
static void refused_opens(void) {
    MPI_File file, again;
    new_name();
    int code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    CHECK(class_of(code) == MPI_ERR_NO_SUCH_FILE, "code %d for a file that is not there", code);
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY,
                         MPI_INFO_NULL, &again);
    /* Plain MPICH 5 returns a code that is none on all ranks but the first. */
    CHECK(code != MPI_SUCCESS, "a file that is there was made again");
    CHECK(!sealed || class_of(code) == MPI_ERR_FILE_EXISTS, "code %d for a file that is there", code);
    OK(MPI_File_close(&file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) OK(MPI_File_delete(path, MPI_INFO_NULL));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(access(path, F_OK) != 0, "the file is still there");
    if (!sealed || nodes == 1) return; /* Open MPI plain goes on with two modes */
    code = MPI_File_open(MPI_COMM_WORLD, path, rank ? MPI_MODE_RDWR : MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    CHECK(class_of(code) == MPI_ERR_NOT_SAME, "code %d for two modes", code);
}

static void deleted_on_close(void) {
    MPI_File file = open_new(MPI_COMM_WORLD, MPI_MODE_WRONLY);
    OK(MPI_File_write_at_all(file, rank, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(access(path, F_OK) == 0, "there is no file");
    OK(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL, "the handle is still there");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(access(path, F_OK) != 0, "the file is still there");
}

static int errors_without_a_file;
static void no_file(MPI_File* file, int* code, ...) {
    (void)file, (void)code;
    ++errors_without_a_file;
}

/* The file is deleted once, whoever else has deleted it before: another handle of it, or the program. */
static void gone_before_close(void) {
    MPI_File first = open_new(MPI_COMM_WORLD, MPI_MODE_WRONLY), second;
    MPI_Errhandler counts, before;
    const int counted = sealed && nodes > 1;
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                     &second));
    OK(MPI_File_close(&first));
    OK(MPI_File_close(&second));
    first = open_new(MPI_COMM_WORLD, MPI_MODE_WRONLY);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(rank != 0 || unlink(path) == 0, "the file is not there");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (counted) {
        OK(MPI_File_get_errhandler(MPI_FILE_NULL, &before));
        OK(MPI_File_create_errhandler(no_file, &counts));
        OK(MPI_File_set_errhandler(MPI_FILE_NULL, counts));
    }
    OK(MPI_File_close(&first));
    if (!counted) return;
    CHECK(errors_without_a_file == 0, "%d errors were raised", errors_without_a_file);
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, before));
    OK(MPI_Errhandler_free(&before));
    OK(MPI_Errhandler_free(&counts));
}

/* A file has the error handler that MPI_FILE_NULL has when it is opened. */
static void handler_of_new_files(void) {
    MPI_Errhandler mine, before, of_file;
    OK(MPI_File_get_errhandler(MPI_FILE_NULL, &before));
    OK(MPI_File_create_errhandler(no_file, &mine));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, mine));
    MPI_File file = open_new(MPI_COMM_WORLD, MPI_MODE_RDWR);
    OK(MPI_File_get_errhandler(file, &of_file));
    CHECK(of_file == mine, "a new file has another handler than MPI_FILE_NULL");
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, before));
    OK(MPI_File_close(&file));
    OK(MPI_Errhandler_free(&of_file));
    /* `mine` stays: plain MPICH 4.0 does not count that a file has it. */
}

/* A split access that cannot begin says so at once, and the next one can begin. */
static void failed_begin(void) {
    MPI_File file = open_new(MPI_COMM_WORLD, MPI_MODE_RDWR);
    const int out = stamp(rank, 1);
    int in = 0;
    MPI_Status status;
    CHECK(MPI_File_write_at_all_begin(file, rank * 4, &out, -1, MPI_INT) != MPI_SUCCESS,
          "a write of -1 elements has begun");
    OK(MPI_File_write_at_all_begin(file, rank * 4, &out, 1, MPI_INT));
    OK(MPI_File_write_at_all_end(file, &out, &status));
    OK(MPI_File_read_at_all_begin(file, rank * 4, &in, 1, MPI_INT));
    OK(MPI_File_read_at_all_end(file, &in, &status));
    CHECK(in == out, "%d came back instead of %d", in, out);
    OK(MPI_File_close(&file));
}

static void appended(void) {
    MPI_File file;
    MPI_Offset place, bytes;
    const int value = stamp(rank, 3);
    new_name();
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
    OK(MPI_File_set_size(file, 24));
    OK(MPI_File_close(&file));
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_WRONLY | MPI_MODE_APPEND | MPI_MODE_DELETE_ON_CLOSE,
                     MPI_INFO_NULL, &file));
    OK(MPI_File_get_position(file, &place));
    CHECK(place == 24, "the pointer is at %lld", (long long)place);
    OK(MPI_File_get_position_shared(file, &place));
    CHECK(place == 24, "the shared pointer is at %lld", (long long)place);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_write_ordered(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    settle(file);
    OK(MPI_File_get_size(file, &bytes));
    CHECK(bytes == 24 + size * (MPI_Offset)sizeof value, "the file has %lld bytes", (long long)bytes);
    OK(MPI_File_close(&file));
}

/* A file that can only be read and written in order: a new view begins where the last one was left. */
static void sequential(void) {
    MPI_File file;
    MPI_Offset disp = 0;
    MPI_Datatype etype, filetype;
    char datarep[MPI_MAX_DATAREP_STRING];
    int value = stamp(rank, 8), got[2] = {0, 0};
    if (OPENMPI && !sealed) return; /* Open MPI 5 begins the second view 8 bytes too far */
    new_name();
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL,
                     MPI_INFO_NULL, &file));
    OK(MPI_File_write_ordered(file, rank == 0 ? "12345678" : "", rank == 0 ? 8 : 0, MPI_BYTE,
                              MPI_STATUS_IGNORE));
    OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_get_view(file, &disp, &etype, &filetype, datarep));
    CHECK(disp == 8, "the view begins at %lld", (long long)disp);
    OK(MPI_File_write_ordered(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    OK(MPI_File_get_view(file, &disp, &etype, &filetype, datarep));
    CHECK(disp == 8 + size * (MPI_Offset)sizeof value, "the view begins at %lld", (long long)disp);
    value = stamp(rank, 9);
    OK(MPI_File_write_ordered(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    for (int i = 0; i < 2; ++i)
        OK(MPI_File_read_at(file, 8 + (i * size + rank) * (MPI_Offset)sizeof value, &got[i], 1, MPI_INT,
                            MPI_STATUS_IGNORE));
    CHECK(got[0] == stamp(rank, 8) && got[1] == value, "there is %d and %d", got[0], got[1]);
    OK(MPI_File_close(&file));
}

/* Several files at a time, on communicators with other ranks and another order. */
static void other_communicators(void) {
    MPI_Comm reversed, part;
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part));
    with_views(reversed);
    MPI_File world = open_new(MPI_COMM_WORLD, MPI_MODE_RDWR), of_part, alone;
    char name[4200];
    int members, here, value = stamp(rank, 1), got = 0;
    OK(MPI_Comm_size(part, &members));
    OK(MPI_Comm_rank(part, &here));
    snprintf(name, sizeof name, "%s.part%d", path, rank % 2);
    OK(MPI_File_open(part, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                     &of_part));
    snprintf(name, sizeof name, "%s.alone%d", path, rank);
    OK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                     MPI_INFO_NULL, &alone));
    OK(MPI_File_write_ordered(of_part, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_write_ordered(world, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_write_shared(alone, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_seek_shared(of_part, 0, MPI_SEEK_SET));
    OK(MPI_File_read_ordered(of_part, &got, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(got == value, "%d instead of %d", got, value);
    OK(MPI_File_read_at(alone, 0, &got, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(got == value, "%d instead of %d", got, value);
    OK(MPI_File_close(&alone));
    OK(MPI_File_close(&world));
    OK(MPI_File_close(&of_part));
    OK(MPI_Comm_free(&reversed));
    OK(MPI_Comm_free(&part));
}

/* Rank 0 writes the gaps that the others leave, each by itself, while these write around them. Nobody's write undoes
 * another's. */
static void beside_gaps(void) {
    enum { PIECES = 2000, PIECE = 64 };
    if (!sealed || nodes == 1) return; /* plain ROMIO loses some: it reads and writes back the gaps */
    MPI_File file = open_new(MPI_COMM_WORLD, MPI_MODE_RDWR);
    unsigned char *mine = memory(PIECES * PIECE), *got = memory(PIECE);
    const MPI_Offset stride = size * (MPI_Offset)PIECE;
    MPI_Datatype pieces;
    MPI_Info shown; /* many programs give back what they were shown */
    fill(mine, PIECES * PIECE, 70 + (unsigned)rank);
    OK(MPI_File_get_info(file, &shown));
    OK(MPI_File_set_info(file, shown));
    OK(MPI_Type_vector(PIECES, PIECE, (int)stride, MPI_BYTE, &pieces));
    OK(MPI_Type_commit(&pieces));
    if (rank == 0)
        for (int i = 0; i < PIECES; ++i)
            OK(MPI_File_write_at(file, i * stride, mine + i * PIECE, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_sync(file));
    OK(MPI_File_set_view(file, rank * PIECE, MPI_BYTE, rank ? pieces : MPI_BYTE, "native", shown));
    OK(MPI_Info_free(&shown));
    for (int turn = 0; turn < 4; ++turn) {
        if (rank)
            OK(MPI_File_write_at(file, 0, mine, PIECES * PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
        else
            for (int i = 0; i < PIECES; ++i)
                OK(MPI_File_write_at(file, i * stride, mine + (i + turn) % PIECES * PIECE, PIECE, MPI_BYTE,
                                     MPI_STATUS_IGNORE));
        settle(file);
        for (int i = 0; i < PIECES && rank == 0; ++i) {
            OK(MPI_File_read_at(file, i * stride, got, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
            CHECK(memcmp(got, mine + (i + turn) % PIECES * PIECE, PIECE) == 0, "turn %d: piece %d was undone",
                  turn, i);
        }
        settle(file);
    }
    OK(MPI_Type_free(&pieces));
    OK(MPI_File_close(&file));
    free(mine);
    free(got);
}

/* More than one message, or one buffer, has room for. */
static void large(void) {
    enum { LARGE = 3 << 20 };
    MPI_File file = open_new(MPI_COMM_WORLD, MPI_MODE_RDWR);
    unsigned char* bytes = memory(LARGE);
    MPI_Datatype stripes;
    const int right = (rank + 1) % size;
    OK(MPI_Type_create_resized(MPI_BYTE, 0, 1, &stripes));
    OK(MPI_Type_free(&stripes));
    OK(MPI_Type_vector(LARGE / 4096, 4096, 4096 * size, MPI_BYTE, &stripes));
    OK(MPI_Type_commit(&stripes));
    fill(bytes, LARGE, 50 + (unsigned)rank);
    OK(MPI_File_set_view(file, rank * 4096, MPI_BYTE, stripes, "native", MPI_INFO_NULL));
    OK(MPI_File_write_all(file, bytes, LARGE, MPI_BYTE, MPI_STATUS_IGNORE));
    settle(file);
    memset(bytes, 0, LARGE);
    OK(MPI_File_set_view(file, right * 4096, MPI_BYTE, stripes, "native", MPI_INFO_NULL));
    OK(MPI_File_read_all(file, bytes, LARGE, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_FILLED(bytes, LARGE, 50 + (unsigned)right);
    OK(MPI_Type_free(&stripes));
    OK(MPI_File_close(&file));
    free(bytes);
}

#ifdef HAVE_COUNT_VARIANTS
static void large_counts(void) {
    MPI_File file = open_new(MPI_COMM_WORLD, MPI_MODE_RDWR);
    int value = stamp(rank, 2), got = 0;
    MPI_Request request;
    OK(MPI_File_write_ordered_c(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    OK(MPI_File_read_ordered_c(file, &got, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(got == value, "%d instead of %d", got, value);
    OK(MPI_File_write_at_all_c(file, rank * (MPI_Offset)sizeof value, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_iwrite_shared_c(file, &value, 1, MPI_INT, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
}
#endif

/* Calls of it by the library: this program's definition is the one that it finds. */
static int syncs;
int fsync(int descriptor) {
    ++syncs;
    return (int)syscall(SYS_fsync, descriptor);
}

static long bytes_of_file(const char* name) {
    struct stat status;
    CHECK(stat(name, &status) == 0, "%s is not there", name);
    return (long)status.st_size;
}

/* What was opened is written to, also where its data is gathered first, and whatever has its name by then; and synced. */
static void open_under_another_name(void) {
    enum { CELL = 16, CELLS_EACH = 500 };
    MPI_Info info;
    MPI_Datatype type;
    char other[sizeof path + 8];
    const int removed = 1, renamed = 0;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "romio_cb_write", "enable"));
    OK(MPI_Type_vector(CELLS_EACH, CELL, CELL * size, MPI_BYTE, &type));
    OK(MPI_Type_commit(&type));
    char* data = memory(CELL * CELLS_EACH);
    memset(data, 'a' + rank, CELL * CELLS_EACH);
    for (int how = renamed; how <= removed; ++how) {
        MPI_File file;
        new_name();
        snprintf(other, sizeof other, "%s-2", path);
        OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, info, &file));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0 && how == renamed) {
            FILE* strangers = NULL;
            CHECK(rename(path, other) == 0 && (strangers = fopen(path, "w")), "%s", path);
            fputs("a stranger's", strangers);
            fclose(strangers);
        } else if (rank == 0) {
            CHECK(unlink(path) == 0, "%s", path);
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_File_set_view(file, (MPI_Offset)CELL * rank, MPI_BYTE, type, "native", info));
        OK(MPI_File_write_all(file, data, CELL * CELLS_EACH, MPI_BYTE, MPI_STATUS_IGNORE));
        int before = syncs, all = 0;
        OK(MPI_File_sync(file));
        before = syncs - before;
        OK(MPI_Allreduce(&before, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        CHECK(all > 0, "MPI_File_sync synced nothing");
        OK(MPI_File_close(&file));
        if (rank == 0 && how == renamed) {
            CHECK(bytes_of_file(path) == 12, "the stranger's file has %ld bytes now", bytes_of_file(path));
            CHECK(bytes_of_file(other) == (long)CELL * CELLS_EACH * size, "%ld bytes", bytes_of_file(other));
            unlink(path), unlink(other);
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Type_free(&type));
    OK(MPI_Info_free(&info));
    free(data);
}

/* Blocks of a file are dealt to the ranks, who read them together until nothing is left. */
static void read_to_the_end(void) {
    if (OPENMPI) return; /* its reads with views go on for ever, plain too */
    enum { BLOCK = 32768, ROUNDS = 4 };
    MPI_File file = open_new(MPI_COMM_WORLD, MPI_MODE_RDWR);
    MPI_Datatype block, dealt;
    MPI_Status status;
    int *cells = memory(2 * BLOCK * ROUNDS * sizeof(int)), total = 0;
    OK(MPI_Type_contiguous(BLOCK, MPI_INT, &block));
    OK(MPI_Type_create_resized(block, 0, (MPI_Aint)BLOCK * (MPI_Aint)sizeof(int) * size, &dealt));
    OK(MPI_Type_commit(&dealt));
    const MPI_Offset first = (MPI_Offset)BLOCK * (MPI_Offset)sizeof(int) * rank;
    OK(MPI_File_set_view(file, first, MPI_INT, dealt, "native", MPI_INFO_NULL));
    const int mine = 5 * BLOCK / 2;
    fill_ints(cells, rank, 0, mine);
    OK(MPI_File_write_at_all(file, 0, cells, mine, MPI_INT, MPI_STATUS_IGNORE));
    settle(file);
    for (int i = 0; i < ROUNDS; ++i) {
        memset(cells, 0xff, 2 * BLOCK * sizeof(int));
        OK(MPI_File_read_all(file, cells, 2 * BLOCK, MPI_INT, &status));
        const int count = received(&status), left = rank == size - 1 ? mine : 3 * BLOCK;
        CHECK(count == (i == 0   ? 2 * BLOCK
                        : i == 1 ? left - 2 * BLOCK
                                 : 0),
              "round %d: %d cells were read", i, count);
        if (i == 0) check_ints(cells, rank, 0, count, "blocks");
        if (i == 1) check_ints(cells, rank, 2 * BLOCK, mine - 2 * BLOCK, "the last blocks");
        if (i == 2) CHECK(cells[0] == -1, "something was read behind the end of the file");
        total += count;
    }
    CHECK(total == (rank == size - 1 ? mine : 3 * BLOCK), "%d cells in all", total);
    OK(MPI_File_close(&file));
    OK(MPI_Type_free(&dealt));
    OK(MPI_Type_free(&block));
    free(cells);
}

void rule_files(void) {
    refused_opens();
    at_offsets();
    with_views(MPI_COMM_WORLD);
    with_gaps_in_memory();
    individual_pointers();
    shared_pointer();
    moved_shared_pointer();
    in_order();
    sizes_of_files();
    asked();
    aggregators();
    handler_of_new_files();
    failed_begin();
    deleted_on_close();
    gone_before_close();
    appended();
    sequential();
    other_communicators();
    beside_gaps();
    large();
    read_to_the_end();
#ifdef HAVE_COUNT_VARIANTS
    large_counts();
#endif
    open_under_another_name();
}
