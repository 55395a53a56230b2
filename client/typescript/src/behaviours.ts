/**
 * Retries, pauses and time limits of the calls. All clients share them: see client/behaviours.json. Times are in
 * seconds, sizes in bytes.
 */

/** How often a call is tried if its answer is lost or the gateway asks to come back later. */
export const tries = 6;
/** The pause after the first try. Each further pause is twice as long. */
export const firstPause = 0.5;
/** The longest pause, even if the gateway asks for a longer one. */
export const longestPause = 60;
/** The longest silence: until an answer begins, and between two pieces of its body. */
export const longestSilence = 30;
/** The longest time that the gateway holds back an answer: until a task ends, or until a speech begins. */
export const longestHeld = 60;
/** The slowest pace of a request body that the gateway accepts, in bytes a second. */
export const leastPace = 16384;
/** How long one poll of a task waits for its end. Progress is reported that often. */
export const poll = 5;
/** The shortest time between two polls of a task. */
export const lookPause = 1;
/** How long a wait keeps trying while the gateway is away. */
export const patience = 600;
/** The paths of submits that make a task. Escapes are refused, since a proxy may read %2e%2e as the parent folder. */
export const submitPath = '^/v1/(videos|images|music|artgen)/generations(/[A-Za-z0-9_-]+)*$';
