// A picture, then one of its buttons that waits for a mask, which is painted, and the
// picture that comes of it.
import {must} from '../browser.mjs'

export default async ({come, key}) => {
	const v = await come()
	await v.signIn(key)
	await v.go('/playground?model=art')
	await v.fill('textbox', 'Prompt', 'a lighthouse at dusk [[sandbox: duration=1s]]')
	await v.press('button', 'Generate')
	await v.sees('Completed')
	await v.press('link', 'Open the task')
	await v.holds(() => document.querySelectorAll('.task-artgrid img').length === 4)
	// Upscale the first, then have a part of it made anew.
	await v.click('.task-artgrid figure:first-child .task-artbuttons button')
	await v.holds(() => document.body.innerText.includes('Vary (Region)'))
	const before = v.page.url()
	await v.page.evaluate(() => [...document.querySelectorAll('.task-artbuttons button')].find(b => b.innerText.startsWith('Vary (Region)')).click())
	await v.holds(url => location.href !== url, before)
	await v.sees('Waiting for you')
	await v.inspect('mask')

	// With the keyboard, as somebody without a pointer would.
	const mask = await v.page.waitForSelector('canvas[role=application]')
	await mask.focus()
	for (const stroke of ['Space', 'ArrowRight', 'Space', 'ArrowDown', 'Space']) await v.page.keyboard.press(stroke)
	await v.drawn('canvas[role=application]')
	await v.holds(() => document.querySelector('.task-easel img').naturalWidth > 0)
	await v.inspect('painted-mask')
	await v.fill('textbox', 'Prompt', 'a red roof [[sandbox: duration=1s]]')
	await v.press('button', 'Continue the task')
	await v.sees('Completed')
	const shown = await v.page.waitForSelector('.task-media img, .task-artgrid img')
	await v.holds(i => i.complete && i.naturalWidth > 0, shown)
	must(!(await v.page.evaluate(() => document.body.innerText)).includes('Waiting for you'), 'the task still waits')

	// Tasks without a prompt are named by what they do.
	await v.go('/tasks?type=art')
	await v.holds(() => [...document.querySelectorAll('.tasks-prompt')].some(e => e.innerText === 'Upscale'))
	await v.go('/tasks?type=art&view=gallery')
	await v.holds(() => [...document.querySelectorAll('.tasks-tileprompt')].some(e => e.innerText === 'Upscale'))
	await v.inspect('tasks-without-prompts')
	await v.leave()
}
