<#
.SYNOPSIS
Checks on a real Windows what no test under Wine can show.

.DESCRIPTION
docs/windows.md has the table of what is shown where; the numbers here are its
numbers. Most checks need nobody. Those with a console window ask for a key
press; -Unattended leaves them out. The exit status is the number of checks
that failed.

    go build -o wireguardrun.exe ./cmd/wireguardrun
    powershell -ExecutionPolicy Bypass -File test\windows\manual.ps1 -Program .\wireguardrun.exe

It needs PowerShell 5.1 or later, and nothing else. Copy its output into the
change or the issue that it is about.
#>
param(
    [string]$Program = 'wireguardrun.exe',
    [switch]$Unattended
)

Set-StrictMode -Version 2
$ErrorActionPreference = 'Stop'

$Program = (Get-Command $Program).Source
$folder = Join-Path ([IO.Path]::GetTempPath()) ('wireguardrun-' + [Guid]::NewGuid())
$null = New-Item -ItemType Directory -Path $folder
$failed = 0
$patience = 30000 # milliseconds, far more than anything here takes

# A server that knows of nothing: it prints before each answer, tells its
# process id, and writes it to a file as well.
$server = Join-Path $folder 'server.ps1'
Set-Content -Path $server -Encoding ASCII -Value @'
param([string]$PidFile = '')
if ($PidFile) { Set-Content -Path $PidFile -Value $PID }
[Console]::Out.WriteLine('stray at start')
while ($null -ne ($line = [Console]::In.ReadLine())) {
    $id = (ConvertFrom-Json $line).id
    [Console]::Out.WriteLine('stray before ' + $id)
    [Console]::Out.WriteLine('{"jsonrpc":"2.0","id":' + $id + ',"result":{"pid":' + $PID + '}}')
}
exit 7
'@

# Prints its arguments, one a line, between marks.
$arguments = Join-Path $folder 'arguments.ps1'
Set-Content -Path $arguments -Encoding ASCII -Value @'
foreach ($a in $args) { [Console]::Out.WriteLine('<' + $a + '>') }
'@
$tool = Join-Path $folder 'tool.cmd'
Set-Content -Path $tool -Encoding ASCII -Value "@powershell -NoProfile -ExecutionPolicy Bypass -File `"$arguments`" %*"

$powershell = 'powershell.exe -NoProfile -ExecutionPolicy Bypass -File'

function Check([string]$Name, [scriptblock]$Test) {
    try {
        $problem = & $Test
    } catch {
        $problem = $_.ToString()
    }
    if ($problem) {
        $script:failed++
        Write-Output "FAIL $Name"
        Write-Output "     $problem"
    } else {
        Write-Output "ok   $Name"
    }
}

# Starts wireguardrun with pipes for all three streams. The command line is
# taken as it is.
function Open-Session([string]$CommandLine) {
    $info = New-Object Diagnostics.ProcessStartInfo
    $info.FileName = $Program
    $info.Arguments = $CommandLine
    $info.UseShellExecute = $false
    $info.CreateNoWindow = $true
    $info.RedirectStandardInput = $true
    $info.RedirectStandardOutput = $true
    $info.RedirectStandardError = $true
    [Diagnostics.Process]::Start($info)
}

function Close-Session($Session) {
    $Session.StandardInput.Close()
    $out = $Session.StandardOutput.ReadToEndAsync()
    $err = $Session.StandardError.ReadToEndAsync()
    if (-not $Session.WaitForExit($patience)) {
        $Session.Kill()
        throw 'it does not end'
    }
    @{ Out = $out.Result; Err = $err.Result; Code = $Session.ExitCode }
}

function Send-Ping($Session, [int]$Id) {
    $Session.StandardInput.Write("{`"jsonrpc`":`"2.0`",`"id`":$Id,`"method`":`"ping`"}`n")
    $Session.StandardInput.Flush()
    $Session.StandardOutput.ReadLine()
}

function Test-Gone([int]$Id) {
    for ($waited = 0; $waited -lt $patience; $waited += 100) {
        if (-not (Get-Process -Id $Id -ErrorAction SilentlyContinue)) { return $true }
        Start-Sleep -Milliseconds 100
    }
    $false
}

Write-Output "$([Environment]::OSVersion.VersionString), PowerShell $($PSVersionTable.PSVersion)"
& $Program version

Check '1 strict handle lists: the demo starts its servers' {
    $out = & $Program demo 2>&1 | Out-String
    if ($LASTEXITCODE -ne 0 -or $out -notmatch 'guarded: 7 of 7 replies arrived, 0 stray lines') { $out }
}

Check '2 the relay with pipes of CreatePipe; answers alone reach the client' {
    $s = Open-Session "-- $powershell `"$server`""
    $answer = Send-Ping $s 1
    $end = Close-Session $s
    if ($answer -notmatch '^\{"jsonrpc":"2.0","id":1,"result":\{"pid":\d+\}\}$') { return "the answer is: $answer" }
    if ($end.Out -ne '') { return "the client also got: $($end.Out)" }
    if ($end.Err -notmatch 'stray at start' -or $end.Err -notmatch 'stray before 1') { return "standard error has: $($end.Err)" }
    if ($end.Code -ne 7) { "the status is $($end.Code), not the server's 7" }
}

Check '3 the hand-over of pipes of CreatePipe, which may have no name' {
    $s = Open-Session '--wire=fds -- cmd.exe /d /c set WIREGUARDRUN_'
    $end = Close-Session $s
    if ($end.Err -notmatch 'WIREGUARDRUN_HANDOVER=v1;mode=fds;in=3:[0-9a-f]+@pipe:\S+;out=4:[0-9a-f]+@pipe:\S+') { return $end.Err }
    Write-Host ($end.Err -split "`r?`n" | Select-String 'HANDOVER' | Out-String).Trim()
}

Check '4 all 32 bits of an exit status' {
    $s = Open-Session '-- cmd.exe /d /c exit -1073741819'
    $end = Close-Session $s
    if ($end.Code -ne -1073741819) { "the status is $($end.Code)" }
}

Check '5 the server ends when wireguardrun is killed' {
    $s = Open-Session "-- $powershell `"$server`""
    $null = (Send-Ping $s 1) -match '"pid":(\d+)'
    $id = [int]$Matches[1]
    $s.Kill()
    if (-not (Test-Gone $id)) { Stop-Process -Id $id -Force; "process $id stayed" }
}

Check '6 a server that ends by itself ends the session, with the client still there' {
    $s = Open-Session '-- cmd.exe /d /c exit 3'
    if (-not $s.WaitForExit($patience)) { $s.Kill(); return 'it does not end' }
    if ($s.ExitCode -ne 3) { "the status is $($s.ExitCode)" }
}

Check '7 a server that is asked to end where there is no console' {
    $s = Open-Session "--eof-timeout=200ms --stop-timeout=200ms -- cmd.exe /d /c ping -n 60 127.0.0.1"
    $end = Close-Session $s
    if ($end.Code -eq 0) { 'the status is 0' }
}

Check '8 cmd.exe: each argument stays one and means nothing' {
    # Each as the command line has it, and as the program has to get it.
    $cases = @(
        @('plain', 'plain'),
        @('"two words"', 'two words'),
        @('"x&echo INJECTED"', 'x&echo INJECTED'),
        @('a|more', 'a|more'),
        @('a^b', 'a^b'),
        @('100%', '100%'),
        @('%PATH%', '%PATH%'),
        @('"%PATH% & %CD%"', '%PATH% & %CD%'),
        @('!PATH!', '!PATH!'),
        @('"say \"hi\""', 'say "hi"'),
        @('"\"&echo INJECTED"', '"&echo INJECTED'),
        @('"C:\a b\\"', 'C:\a b\')
    )
    foreach ($case in $cases) {
        $s = Open-Session "--wire=stdio --log-level=off -- `"$tool`" $($case[0])"
        $end = Close-Session $s
        $got = $end.Err.Trim()
        if ($got -ne "<$($case[1])>") { "$($case[0]) arrives as $got" }
    }
}

Check '9 npx, if it is there' {
    if (-not (Get-Command npx.cmd -ErrorAction SilentlyContinue)) { Write-Host '     npx is not there'; return }
    $s = Open-Session '--wire=stdio --log-level=off -- npx --version'
    $end = Close-Session $s
    if ($end.Code -ne 0 -or $end.Err -notmatch '\d+\.\d+\.\d+') { "status $($end.Code): $($end.Err)" }
}

# Starts a server in a console window of its own and asks for something to be
# done there; then the server and wireguardrun must have ended.
function Check-Window([string]$Name, [string]$What) {
    if ($Unattended) {
        Write-Output "left out: $Name"
        return
    }
    Check $Name {
        $pidFile = Join-Path $folder ([Guid]::NewGuid())
        $window = Start-Process -FilePath $Program -PassThru -ArgumentList "-- $powershell `"$server`" -PidFile `"$pidFile`""
        for ($waited = 0; -not (Test-Path $pidFile) -and $waited -lt $patience; $waited += 100) { Start-Sleep -Milliseconds 100 }
        $id = [int](Get-Content $pidFile)
        $null = Read-Host "     $What, then press Enter here"
        if (-not $window.WaitForExit($patience)) { $window.Kill(); return 'wireguardrun is still there' }
        if (-not (Test-Gone $id)) { Stop-Process -Id $id -Force; return "the server, process $id, is still there" }
        Write-Host ('     it ended with 0x{0:X8}' -f $window.ExitCode)
    }
}

Check-Window '10 Ctrl-C ends the server' 'In the new window press Ctrl-C once'
Check-Window '11 Ctrl-Break ends the server' 'In the new window press Ctrl-Break once'
Check-Window '12 the end of the console' 'Close the new window'

if (-not $Unattended) {
    Write-Output @"

Left for you, with nothing to run here:
13 Configure a server with wireguardrun in a desktop client (an editor, a chat
   client). No console window may open or flash, at the start or later.
14 With that client open, log off, and log on again. No server may be left in
   the task manager. The same for a shutdown, by the system's event log.
"@
}

Remove-Item -Recurse -Force $folder
Write-Output "$failed failed"
exit $failed
