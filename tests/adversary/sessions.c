/* Communicators from groups of a session. Arguments: "world" (MPI_Init is called) or "sessions" (it is not),
 * then what to make one after the other: "all" processes, "pairs" of neighbours, pairs "across" (0 and 2, 1
 * and 3), "self", "all" to "nowhere", the same with a "handler" of the program, and, after another one, "lied": all processes, while liar.c
 * has another private communicator made. Each process says how many processes came out, or "refused" (there is no place for the result), and
 * after "lied" whether there are more "keys left" than before; at the end, whether something of this user's was left in /dev/shm.
 * MPISEC_LAB_SQUATTER: a command to run first. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int rank, size, called, in_use; /* lines of keys, while there was a communicator */
static MPI_Session session;

static void say(const char* text) {
    printf("process %d: %s\n", rank, text);
    fflush(stdout);
}

static void handle(MPI_Comm* comm, int* code, ...) {
    (void)comm, (void)code;
    called = 1;
}

/* Cache lines of memory that is hidden from dumps and children in which anything is: keys. */
static int lines_of_keys(void) {
    static const char zeros[64];
    FILE* maps = fopen("/proc/self/smaps", "r");
    char text[4096], mode = '-', another;
    unsigned long begin = 0, end = 0, from, to;
    int lines = 0;
    while (maps && fgets(text, sizeof text, maps)) {
        if (sscanf(text, "%lx-%lx %c", &from, &to, &another) == 3) begin = from, end = to, mode = another;
        if (strncmp(text, "VmFlags:", 8) != 0 || mode != 'r' || !strstr(text, " dd") ||
            !(strstr(text, " wf") || strstr(text, " dc")))
            continue;
        for (const char* line = (const char*)begin; line < (const char*)end; line += sizeof zeros)
            lines += memcmp(line, zeros, sizeof zeros) != 0;
    }
    if (maps) fclose(maps);
    return lines;
}

static void make(const char* what, MPI_Group everyone) {
    int members[2] = {rank, rank}, n = 2;
    if (strcmp(what, "pairs") == 0) members[0] = rank / 2 * 2, members[1] = members[0] + 1;
    if (strcmp(what, "across") == 0) members[0] = rank % 2, members[1] = rank % 2 + 2;
    if (strcmp(what, "self") == 0) n = 1;
    const int lied = strcmp(what, "lied") == 0, keys = lied ? lines_of_keys() : 0;
    const int all =
        lied || strcmp(what, "all") == 0 || strcmp(what, "handler") == 0 || strcmp(what, "nowhere") == 0;
    void (*lie)(const char*, int, int) = (void (*)(const char*, int, int))dlsym(RTLD_DEFAULT, "liar_lie");
    if (lied) lie("Comm_create", 1, 0);
    MPI_Group group;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Errhandler handler = MPI_ERRORS_RETURN;
    if (strcmp(what, "handler") == 0) MPI_Comm_create_errhandler(handle, &handler);
    if (all)
        MPI_Group_excl(everyone, 0, NULL, &group);
    else
        MPI_Group_incl(everyone, n, members, &group);
    int code = MPI_Comm_create_from_group(
        group, "org.example.tag", MPI_INFO_NULL, handler,
        handler != MPI_ERRORS_RETURN || strcmp(what, "nowhere") == 0 ? NULL : &comm);
    MPI_Group_free(&group);
    if (called) say("handler called");
    if (lied) say(lines_of_keys() > keys ? "keys left" : in_use > keys ? "keys wiped" : "NO KEYS SEEN");
    if (code != MPI_SUCCESS || comm == MPI_COMM_NULL) {
        say(comm == MPI_COMM_NULL ? "refused" : "refused, but there is one");
        return;
    }
    int one = 1, sum = 0, ones[64];
    char text[32];
    MPI_Comm_size(comm, &n);
    MPI_Allgather(&one, 1, MPI_INT, ones, 1, MPI_INT, comm); /* Open MPI cannot reduce before MPI_Init */
    for (int i = 0; i < n; ++i) sum += ones[i];
    snprintf(text, sizeof text, "%d", sum);
    say(text);
    char secret[40] = "what sessions.c sends, not for the wire";
    MPI_Bcast(secret, sizeof secret, MPI_CHAR, 0, comm);
    in_use = lines_of_keys();
    MPI_Comm_free(&comm);
}

static int something_left(int tell) {
    int found = 0;
    DIR* memory = opendir("/dev/shm");
    struct stat status;
    for (struct dirent* entry; memory && (entry = readdir(memory));)
        if (strncmp(entry->d_name, "mpisec", 6) == 0 &&
            fstatat(dirfd(memory), entry->d_name, &status, 0) == 0 && status.st_uid == geteuid()) {
            found = 1;
            if (tell) printf("left in /dev/shm: %s\n", entry->d_name);
        }
    if (memory) closedir(memory);
    return found;
}

int main(int argc, char** argv) {
    const int world = strcmp(argv[1], "world") == 0;
    const char* squatter = getenv("MPISEC_LAB_SQUATTER");
    if (squatter && system(squatter) != 0) return 1;
    if (world) MPI_Init(&argc, &argv);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Group everyone;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &everyone);
    MPI_Group_rank(everyone, &rank);
    MPI_Group_size(everyone, &size);
    for (int i = 2; i < argc; ++i) make(argv[i], everyone);
    int looks = 0; /* others may not be done yet, or make theirs only now */
    while (something_left(0) && ++looks < 250) usleep(100000);
    if (looks == 250) something_left(1);
    fflush(stdout);
    MPI_Group_free(&everyone);
    MPI_Session_finalize(&session);
    if (world) MPI_Finalize();
    return 0;
}
