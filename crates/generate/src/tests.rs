mod compare;
mod faulty;
mod programs;
