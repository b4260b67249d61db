/*
 * A stand-in for bcryptprimitives.dll, for Windows tests under Wine only.
 *
 * Before main runs, every Go program asks ProcessPrng for random bytes and
 * dies without it. Old Wine releases (8, for one) do not ship the DLL, but
 * they do have RtlGenRandom in advapi32, which gives bytes of the same kind.
 */
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *data, SIZE_T size)
{
	/* RtlGenRandom takes a 32-bit length; ours can be longer. */
	const SIZE_T most = (SIZE_T)1 << 30;

	while (size > 0) {
		SIZE_T part = size < most ? size : most;

		if (!RtlGenRandom(data, (ULONG)part))
			return FALSE;
		data += part;
		size -= part;
	}
	return TRUE;
}
