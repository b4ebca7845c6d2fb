/* What ranks of one node may do that puts their records (MPISEC_SAME_NODE=verify) to the test, without any
 * attack. Rank 0 and 1 are on one node. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 5000 };

static int rank, wrong, refused;

static void expect(int good, const char* what) {
    if (good) return;
    ++wrong;
    printf("rank %d: %s\n", rank, what);
}

/* A message that is refused, for want of a buffer, leaves no record that the next one would be compared with.
 */
static void refused_sends(void) {
    for (int i = 0; i < 3; ++i) {
        int number = 4711 + i, got = 0, taken = 0;
        if (rank == 0) {
            taken = MPI_Bsend(&number, 1, MPI_INT, 1, 1, MPI_COMM_WORLD) == MPI_SUCCESS;
            MPI_Send(&number, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
            MPI_Send(&taken, 1, MPI_INT, 1, 6, MPI_COMM_WORLD);
        } else if (rank == 1) {
            expect(MPI_Recv(&got, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
                       got == number,
                   "the message after a refused one is wrong");
            MPI_Recv(&taken, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            refused += !taken;
            if (taken) MPI_Recv(&got, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
}

/* So many unreceived messages, then received by tag from the last to the first. */
static void many_unreceived(void) {
    int got = 0;
    if (rank == 0) {
        for (int i = 0; i < MANY; ++i) MPI_Send(&i, 1, MPI_INT, 1, 100 + i, MPI_COMM_WORLD);
        MPI_Send(&got, 0, MPI_INT, 1, 2, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Recv(&got, 0, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = MANY; i-- > 0;) {
            const int code = MPI_Recv(&got, 1, MPI_INT, 0, 100 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            expect(code == MPI_SUCCESS && got == i, "one of many messages is wrong");
        }
    }
}

/* Receives of one tag that are completed from the last to the first, while one that nothing matches is open.
 */
static void completed_in_reverse(void) {
    enum { WINDOW = 200 };
    static int in[WINDOW];
    MPI_Request requests[WINDOW], open;
    int never = 0;
    if (rank == 0) {
        for (int i = 0; i < WINDOW; ++i) MPI_Send(&i, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Irecv(&never, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, &open);
        for (int i = 0; i < WINDOW; ++i) MPI_Irecv(in + i, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, requests + i);
        for (int i = WINDOW; i-- > 0;)
            expect(MPI_Wait(requests + i, MPI_STATUS_IGNORE) == MPI_SUCCESS && in[i] == i,
                   "a message of a window is wrong");
        MPI_Cancel(&open);
        MPI_Wait(&open, MPI_STATUS_IGNORE);
    }
}

/* Messages to oneself that are given up, where MPI does that (MPICH), then one that is received. */
static void cancelled_sends(void) {
    for (int i = 0; i < 6; ++i) {
        int given_up = i % 3 ? 1000 + i : i, number = i, /* alike or not */ got = -1, cancelled = 0;
        MPI_Request request;
        MPI_Status status;
        if (i < 3)
            MPI_Issend(&given_up, 1, MPI_INT, 0, 7, MPI_COMM_SELF, &request);
        else {
            MPI_Send_init(&given_up, 1, MPI_INT, 0, 7, MPI_COMM_SELF, &request);
            MPI_Start(&request);
        }
        MPI_Cancel(&request);
        int complete = 0;
        MPI_Request_get_status(request, &complete, &status);
        if (complete) MPI_Test_cancelled(&status, &cancelled);
        if (!cancelled) MPI_Recv(&got, 1, MPI_INT, 0, 7, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (i >= 3) MPI_Request_free(&request);
        MPI_Isend(&number, 1, MPI_INT, 0, 7, MPI_COMM_SELF, &request);
        expect(MPI_Recv(&got, 1, MPI_INT, 0, 7, MPI_COMM_SELF, MPI_STATUS_IGNORE) == MPI_SUCCESS && got == i,
               "the message after a cancelled one is wrong");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* Two messages that matched probes took, received in the other order. */
static void matched_in_reverse(void) {
    int numbers[2] = {1, 2}, got[2] = {0, 0};
    MPI_Message first, second;
    if (rank == 0) {
        MPI_Send(numbers, 1, MPI_INT, 1, 8, MPI_COMM_WORLD);
        MPI_Send(numbers + 1, 1, MPI_INT, 1, 8, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Mprobe(0, 8, MPI_COMM_WORLD, &first, MPI_STATUS_IGNORE);
        MPI_Mprobe(0, 8, MPI_COMM_WORLD, &second, MPI_STATUS_IGNORE);
        MPI_Mrecv(got + 1, 1, MPI_INT, &second, MPI_STATUS_IGNORE);
        MPI_Mrecv(got, 1, MPI_INT, &first, MPI_STATUS_IGNORE);
        expect(got[0] == 1 && got[1] == 2, "a message that a matched probe took is wrong");
    }
}

/* 100 columns of a matrix, received as one run. */
static void other_layout(void) {
    static double matrix[100][100], column[100];
    MPI_Datatype type;
    MPI_Type_vector(100, 1, 100, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < 100; ++i) matrix[i][7] = i + 0.5;
    if (rank == 0) MPI_Send(&matrix[0][7], 1, type, 1, 5, MPI_COMM_WORLD);
    if (rank == 1) {
        expect(MPI_Recv(column, 100, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
                   column[99] == 99.5,
               "a column is wrong");
    }
    MPI_Type_free(&type);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    refused_sends();
    many_unreceived();
    completed_in_reverse();
    cancelled_sends();
    matched_in_reverse();
    other_layout();
    if (rank == 1) printf("records: %d wrong, %d refused\n", wrong, refused);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
