"""How the client repeats, waits and bounds its calls: client/behaviours.json, which all clients share.

Times are in seconds, sizes in bytes.
"""

#: How often a call is made whose answer is lost, or that is to come back later.
TRIES = 6
#: The pause after the first try; each further one is twice as long.
FIRST_PAUSE = 0.5
#: The most that is waited because the gateway asks for it.
LONGEST_PAUSE = 60
#: How long nothing may come: until an answer begins, and between two pieces of its body.
LONGEST_SILENCE = 30
#: The most that the gateway holds back an answer: while it waits for a task, or until a speech has begun.
LONGEST_HELD = 60
#: The pace of bodies, in bytes a second. The gateway takes none that comes more slowly.
LEAST_PACE = 16384
#: How long one look at a task waits for its end: progress is reported that often.
POLL = 5
#: The least time between two looks at a task.
LOOK_PAUSE = 1
#: How long a wait goes on while the gateway is away.
PATIENCE = 600
#: Endpoints whose submit makes a task. There are no escapes: a proxy may read %2e%2e as the path above.
SUBMIT_PATH = "^/v1/(videos|images|music|artgen)/generations(/[A-Za-z0-9_-]+)*$"
