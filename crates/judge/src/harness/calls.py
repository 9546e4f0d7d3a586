
# Calls functions of foreign programs and records what they return.
#
# Expected values are not here. A record is one line of JSON: [program, call, "value", value] or
# [program, call, "error", message]; the last line is ["finished"]. What foreign code could reach in
# this process would only change which values are recorded, and these are compared outside.
import signal

set_timer, TIMER, TOO_LONG = signal.setitimer, signal.ITIMER_VIRTUAL, signal.SIGVTALRM


def main(payload, emit):
    setup = json.loads(payload)
    seconds = setup["cpu_seconds"]
    if seconds is not None:
        signal.signal(TOO_LONG, on_timer)
    for index, program in enumerate(setup["programs"]):
        run(index, program, seconds, emit)
    emit(b'["finished"]\n')


def on_timer(number, frame):
    raise OutOfTime


def run(index, program, seconds, emit):
    calls = program["args"]
    try:
        try:
            start_timer(seconds)
            function = find(load(program["source"]), program["entry"], program["in_solution"])
        finally:
            stop_timer(seconds)
    except BaseException as error:
        message = describe(error)
        for call in range(len(calls)):
            emit(failure(index, call, message))
        return
    for call, encoded in enumerate(calls):
        try:
            # Fresh for each call, which may change them.
            args = [decode(value) for value in encoded]
            try:
                start_timer(seconds)
                value = function(*args)
            finally:
                stop_timer(seconds)
            text = encode(value, 0, [MAX_NODES])
            emit(b'[%d,%d,"value",%b]\n' % (index, call, text.encode("ascii")))
        except BaseException as error:
            emit(failure(index, call, describe(error)))


def start_timer(seconds):
    if seconds is not None:
        # Again and again, for programs that catch everything.
        set_timer(TIMER, seconds, 0.05)


def stop_timer(seconds):
    if seconds is not None:
        set_timer(TIMER, 0)


def failure(index, call, message):
    return b'[%d,%d,"error",%b]\n' % (index, call, escape(message).encode("ascii"))
