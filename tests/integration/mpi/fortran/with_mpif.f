C     M13: a Fortran 77 program with mpif.h. A ring of messages of
C     several sizes, blocking, non-blocking and persistent, a probe with
C     its status, an in-place reduction. Prints "fortran ok".
      program ring
      implicit none
      include 'mpif.h'
      integer most
      parameter (most = 300000)
      integer ierr, rank, size, to, from, i, k, n, got
      integer sizes(4), status(MPI_STATUS_SIZE), requests(2)
      integer statuses(MPI_STATUS_SIZE, 2)
      integer a(most), b(most), total
      double precision start
      data sizes /0, 10, 16385, most/

      call MPI_Init(ierr)
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
      call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
      to = mod(rank + 1, size)
      from = mod(rank + size - 1, size)
      do 30 k = 1, 4
         n = sizes(k)
         do 10 i = 1, n
            a(i) = rank * 1000003 + i * 7
   10    continue
         call MPI_Irecv(b, n, MPI_INTEGER, from, k, MPI_COMM_WORLD,
     +                  requests(1), ierr)
         call MPI_Isend(a, n, MPI_INTEGER, to, k, MPI_COMM_WORLD,
     +                  requests(2), ierr)
         call MPI_Waitall(2, requests, statuses, ierr)
         call check(b, n, from)
         call MPI_Get_count(statuses(1, 1), MPI_INTEGER, got, ierr)
         if (got .ne. n) call fail('the status of MPI_Waitall')
         call MPI_Sendrecv(a, n, MPI_INTEGER, to, 50, b, n, MPI_INTEGER,
     +        from, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierr)
         call check(b, n, from)
         if (status(MPI_TAG) .ne. 50) call fail('the tag')
         if (status(MPI_SOURCE) .ne. from) call fail('the source')
         call MPI_Isend(a, n, MPI_INTEGER, to, 60, MPI_COMM_WORLD,
     +                  requests(1), ierr)
         call MPI_Probe(MPI_ANY_SOURCE, 60, MPI_COMM_WORLD, status,
     +                  ierr)
         call MPI_Get_count(status, MPI_INTEGER, got, ierr)
         if (got .ne. n) call fail('the status of MPI_Probe')
         call MPI_Recv(b, n, MPI_INTEGER, from, 60, MPI_COMM_WORLD,
     +                 MPI_STATUS_IGNORE, ierr)
         call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr)
         call check(b, n, from)
   30 continue
      total = rank + 1
      call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_SUM,
     +                   MPI_COMM_WORLD, ierr)
      if (total .ne. size * (size + 1) / 2) call fail('MPI_Allreduce')
      call MPI_Barrier(MPI_COMM_WORLD, ierr)
      if (rank .eq. 0) print '(A)', 'fortran ok'
C     A moment: MPICH 4.0.2 may hang in MPI_Finalize without.
      start = MPI_Wtime()
   40 if (MPI_Wtime() - start .lt. 0.05d0) goto 40
      call MPI_Finalize(ierr)
      end

      subroutine check(b, n, from)
      implicit none
      integer n, b(n), from, i
      do 10 i = 1, n
         if (b(i) .ne. from * 1000003 + i * 7) call fail('the content')
   10 continue
      end

      subroutine fail(what)
      implicit none
      include 'mpif.h'
      character*(*) what
      integer ierr
      print '(A, A)', 'FAILED: ', what
      call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
      end
