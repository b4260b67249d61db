package proc

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// newJob returns a job that ends all of its processes when its last handle is
// closed, which is ours, however we end. Processes that ask for it when they
// are started (CREATE_BREAKAWAY_FROM_JOB) are not in it.
func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, os.NewSyscallError("CreateJobObject", err)
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE |
		windows.JOB_OBJECT_LIMIT_BREAKAWAY_OK
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return 0, os.NewSyscallError("SetInformationJobObject", err)
	}
	return job, nil
}

// activeIn returns how many processes of a job have not ended.
func activeIn(job windows.Handle) uint32 {
	var info jobAccounting
	err := windows.QueryInformationJobObject(job, windows.JobObjectBasicAccountingInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil)
	if err != nil {
		return 0
	}
	return info.activeProcesses
}

// jobAccounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type jobAccounting struct {
	userTime, kernelTime             int64
	periodUserTime, periodKernelTime int64
	pageFaults                       uint32
	totalProcesses, activeProcesses  uint32
	terminatedProcesses              uint32
}
