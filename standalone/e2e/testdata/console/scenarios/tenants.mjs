// Two tenants do not see each other, in one browser after the other has signed out, and
// in two at once.
import {must} from '../browser.mjs'

export default async ({come, key, other, base}) => {
	const made = await fetch(base + '/v1/images/generations', {
		method: 'POST', headers: {Authorization: `Bearer ${key}`}, body: JSON.stringify({model: 'theta-image-turbo', prompt: 'a heron', metadata: {reference: 'secret plan'}}),
	})
	const id = (await made.json()).data[0].task_id
	const v = await come()
	v.expected.push(/400/)
	await v.signIn(key)
	await v.go('/tasks')
	await v.sees('secret plan')
	await v.press('button', 'Sign out')
	await v.holds(() => location.pathname.endsWith('/sign-in'))

	await v.signIn(other)
	await v.go('/tasks')
	await v.sees('Tasks')
	await v.settles()
	await v.seesNot('secret plan')
	await v.go(`/tasks/${id}`)
	await v.settles()
	await v.seesNot('secret plan')
	// A tab in which the first is still shown notices that another has signed in.
	await v.go('/tasks')
	await v.sees('Tasks')
	const tab = await v.context.newPage()
	await tab.goto(`${base}/console/account`, {waitUntil: 'networkidle0'}) // an answer that is late would end the session here
	await tab.evaluate(async key => {
		await fetch('/console/session', {method: 'POST', body: JSON.stringify({key})})
	}, key)
	await tab.close()
	await v.page.bringToFront()
	await v.page.evaluate(() => dispatchEvent(new Event('visibilitychange')))
	await v.sees('secret plan')
	must(!(await v.page.evaluate(() => JSON.stringify([{...sessionStorage}, {...localStorage}]))).includes(id), 'the browser keeps tasks of who was here before')
	await v.leave()
}
