! pingpong: one-way times between the first and the last rank, from Fortran ("use mpi_f08").
!
! pingpong [SIZES]: sizes in bytes by commas (1,1024,65536,1048576). Rank 0 prints a line of JSON for each:
!   {"bytes": B, "time_us": half the mean time of a round trip, "repetitions": N}
! What came back is compared with what was sent: after a round trip in which the other side adds one to every byte, and
! after those that are timed, in which it leaves them alone.
program pingpong
    use mpi_f08
    use iso_fortran_env, only: error_unit, int8, real64
    implicit none
    integer, parameter :: tag = 7, largest = 64*1024*1024
    real(real64), parameter :: seconds_per_size = 0.1_real64
    character(len=1000) :: sizes
    integer :: rank, ranks, other, bytes, comma, status

    sizes = "1,1024,65536,1048576"
    if (command_argument_count() > 0) call get_command_argument(1, sizes)
    if (command_argument_count() > 1 .or. verify(trim(sizes), "0123456789,") /= 0) then
        write (error_unit, "(a)") "pingpong: the one argument is sizes in bytes by commas, as 1,1024,65536"
        stop 2
    end if
    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    if (ranks < 2) call give_up("it takes two ranks")
    other = merge(ranks - 1, 0, rank == 0)
    do while (len_trim(sizes) > 0)
        comma = index(trim(sizes)//",", ",")
        read (sizes(:comma - 1), *, iostat=status) bytes
        if (status /= 0) call give_up("a size is missing or too large")
        if (bytes < 1 .or. bytes > largest) call give_up("sizes are 1 byte to 64 MiB")
        if (rank == 0 .or. rank == ranks - 1) call measure(bytes)
        sizes = sizes(comma + 1:)
    end do
    call end_quietly()

contains

    subroutine measure(bytes)
        integer, intent(in) :: bytes
        integer(int8), allocatable :: out(:), in(:)
        integer :: repetitions, i
        real(real64) :: seconds
        character(len=24) :: microseconds

        allocate (out(bytes), in(bytes))
        out = [(int(mod(i*7 + bytes, 101), int8), i=1, bytes)]
        in = -1
        call round_trip(out, in, 1_int8)
        if (rank == 0) call check(in, out + 1_int8)
        seconds = exchange(out, in, 10)
        repetitions = max(2, min(10000, int(seconds_per_size/(2*seconds))))
        if (rank == 0) then ! both ends do the same number
            call MPI_Send(repetitions, 1, MPI_INTEGER, other, tag, MPI_COMM_WORLD)
        else
            call MPI_Recv(repetitions, 1, MPI_INTEGER, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
        end if
        in = -1
        seconds = exchange(out, in, repetitions)
        if (rank /= 0) return
        call check(in, out)
        write (microseconds, "(f20.3)") seconds*1e6_real64
        print "(a, i0, 3a, i0, a)", '{"bytes": ', bytes, ', "time_us": ', trim(adjustl(microseconds)), &
            ', "repetitions": ', repetitions, '}'
    end subroutine

    ! Seconds one way.
    function exchange(out, in, repetitions) result(seconds)
        integer(int8), intent(in) :: out(:)
        integer(int8), intent(inout) :: in(:)
        integer, intent(in) :: repetitions
        real(real64) :: seconds
        integer :: i

        seconds = MPI_Wtime()
        do i = 1, repetitions
            call round_trip(out, in, 0_int8)
        end do
        seconds = (MPI_Wtime() - seconds)/(2*repetitions)
    end function

    ! There and back; the other side adds `change` to each byte.
    subroutine round_trip(out, in, change)
        integer(int8), intent(in) :: out(:), change
        integer(int8), intent(inout) :: in(:)

        if (rank == 0) then
            call MPI_Send(out, size(out), MPI_INTEGER1, other, tag, MPI_COMM_WORLD)
            call MPI_Recv(in, size(in), MPI_INTEGER1, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
        else
            call MPI_Recv(in, size(in), MPI_INTEGER1, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
            if (change /= 0) in = in + change
            call MPI_Send(in, size(in), MPI_INTEGER1, other, tag, MPI_COMM_WORLD)
        end if
    end subroutine

    subroutine check(got, expected)
        integer(int8), intent(in) :: got(:), expected(:)

        if (all(got == expected)) return
        write (error_unit, "(a, i0, a)") "pingpong: ", size(got), " bytes came back changed"
        call MPI_Abort(MPI_COMM_WORLD, 1)
    end subroutine

    subroutine give_up(why)
        character(len=*), intent(in) :: why

        if (rank == 0) write (error_unit, "(2a)") "pingpong: ", why
        call end_quietly()
        stop 2
    end subroutine

    ! MPICH 4.0 over UCX may hang in MPI_Finalize across nodes unless all are quiet before (docs/lab.md).
    subroutine end_quietly()
        use iso_c_binding, only: c_int
        interface
            function usleep(microseconds) bind(c)
                import c_int
                integer(c_int), value :: microseconds
                integer(c_int) :: usleep
            end function
        end interface
        integer(c_int) :: ignored

        call MPI_Barrier(MPI_COMM_WORLD)
        ignored = usleep(20000_c_int)
        call MPI_Finalize()
    end subroutine
end program
