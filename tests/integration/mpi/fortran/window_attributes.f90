! The attributes of a window, as values (MPI standard section 12.2.6).
program window_attributes
    use mpi_f08
    use, intrinsic :: iso_c_binding
    implicit none
    integer, target, asynchronous :: memory(100)
    integer(MPI_ADDRESS_KIND) :: base
    type(MPI_Win) :: win
    type(c_ptr) :: allocated
    integer :: rank

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Win_create(memory, 400_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    base = transfer(c_loc(memory), base)
    call check(base, 400, 4, MPI_WIN_FLAVOR_CREATE)
    call MPI_Win_free(win)
    call MPI_Win_allocate(800_MPI_ADDRESS_KIND, 8, MPI_INFO_NULL, MPI_COMM_WORLD, allocated, win)
    base = transfer(allocated, base)
    call check(base, 800, 8, MPI_WIN_FLAVOR_ALLOCATE)
    call MPI_Win_free(win)
    call MPI_Barrier(MPI_COMM_WORLD)
    if (rank == 0) print '(a)', 'fortran ok'
    call MPI_Finalize()
contains
    subroutine check(base, bytes, unit, flavor)
        integer(MPI_ADDRESS_KIND), intent(in) :: base
        integer, intent(in) :: bytes, unit, flavor
        call one('base', MPI_WIN_BASE, base)
        call one('size', MPI_WIN_SIZE, int(bytes, MPI_ADDRESS_KIND))
        call one('unit', MPI_WIN_DISP_UNIT, int(unit, MPI_ADDRESS_KIND))
        call one('flavor', MPI_WIN_CREATE_FLAVOR, int(flavor, MPI_ADDRESS_KIND))
    end subroutine
    subroutine one(what, keyval, expected)
        character(*), intent(in) :: what
        integer, intent(in) :: keyval
        integer(MPI_ADDRESS_KIND), intent(in) :: expected
        integer(MPI_ADDRESS_KIND) :: value
        logical :: flag
        call MPI_Win_get_attr(win, keyval, value, flag)
        if (flag .and. value == expected) return
        print '(a,a,l2,2i20)', what, ' is wrong:', flag, value, expected
        call MPI_Abort(MPI_COMM_WORLD, 1)
    end subroutine
end program
